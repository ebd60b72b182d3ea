#include "tests/rig/runner/emulated_host.h"

#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/text/format.h"
#include "tests/rig/fabric/isolation.h"

namespace weft::rig {
namespace {

namespace fs = std::filesystem;

// Where /sys/class/net is kept while /sys/class is covered; private to the process's mount namespace.
constexpr const char* kKeep = "/run/rig-net";

Result<void> mounted(int result, const char* what) {
  if (result == 0) return {};
  return system_error("cannot mount", errno, what);
}

void write_line(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text << '\n';
}

// What NCCL, the plugin and rdma-core read of an RDMA device.
void describe_nic(const Scenario& scenario, const fabric::Nic& nic) {
  const fs::path device = fs::path("/sys/class/infiniband") / scenario.nic_name(nic.rail);
  const fs::path pci = text::format("/sys/class/infiniband/.pci/pci0000:00/0000:{:02x}:00.0", 0x41 + nic.rail);
  fs::create_directories(pci / "net" / nic.netdev);
  fs::create_directories(device);
  fs::create_symlink(pci, device / "device");
  const fs::path port = device / "ports/1";
  write_line(port / "link_layer", "Ethernet");
  write_line(port / "state", "4: ACTIVE");
  write_line(port / "rate", text::format("{} Gb/sec", scenario.topology.nic_mbps / 1000.0));
  std::istringstream words(scenario.nic.gids);
  int index = 0;
  for (std::string word; std::getline(words, word, ','); index++) {
    if (word == "empty") continue;  // reading the type of an empty slot fails on a real kernel too
    write_line(port / "gid_attrs/types" / std::to_string(index), "RoCE v2");
    write_line(port / "gid_attrs/ndevs" / std::to_string(index), nic.netdev);
  }
}

}  // namespace

Result<void> enter_host(const Scenario& scenario, int host) {
  const std::string name = fabric::host_name(host);
  if (auto entered = fabric::enter_network(name); !entered) return entered;
  if (auto remounted = fabric::remount_sysfs(); !remounted) return remounted;
  std::error_code problem;
  fs::create_directories(kKeep, problem);
  if (auto done = mounted(mount("/sys/class/net", kKeep, nullptr, MS_BIND | MS_REC, nullptr), kKeep); !done)
    return done;
  if (auto done = mounted(mount("rig", "/sys/class", "tmpfs", 0, "mode=755"), "/sys/class"); !done) return done;
  fs::create_directories("/sys/class/net", problem);
  fs::create_directories("/sys/class/infiniband", problem);
  if (auto done = mounted(mount(kKeep, "/sys/class/net", nullptr, MS_BIND | MS_REC, nullptr), "/sys/class/net"); !done)
    return done;
  for (int rail = 0; rail < scenario.topology.rails; rail++)
    describe_nic(scenario, fabric::nic_of(scenario.topology, host, rail));
  if (scenario.gpudirect) {
    // Where NCCL and the plugin look for the kernel module that lets NICs register GPU memory.
    if (auto done = mounted(mount("rig", "/sys/module", "tmpfs", 0, "mode=755"), "/sys/module"); !done) return done;
    write_line("/sys/module/nvidia_peermem/version", "rig");
  }
  sethostname(name.c_str(), name.size());
  return {};
}

}  // namespace weft::rig
