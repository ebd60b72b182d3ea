#include "net_plugin/devices/sysfs.h"

#include <algorithm>
#include <charconv>

namespace weft::devices {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDevices = "class/infiniband";

}  // namespace

Sysfs::Sysfs(FileTree files, std::string device)
    : files_(std::move(files)), name_(std::move(device)), device_(fs::path(kDevices) / name_) {}

fs::path Sysfs::port(int number) const {
  return device_ / "ports" / std::to_string(number);
}

std::vector<std::string> Sysfs::devices(const FileTree& files) {
  std::vector<std::string> names = files.names(kDevices);
  std::erase_if(names, [](const std::string& name) { return name[0] == '.'; });
  return names;
}

std::string Sysfs::pci_path() const {
  return files_.real_path(device_ / "device").string();
}

// "4: RNIC"; ibv_node_type of the verbs manual.
bool Sysfs::is_iwarp() const {
  return files_.first_line(device_ / "node_type").value_or("").rfind("4:", 0) == 0;
}

std::vector<int> Sysfs::ethernet_ports() const {
  std::vector<int> ports;
  for (const std::string& number : files_.names(device_ / "ports")) {
    int port = 0;
    const auto [stopped, wrong] = std::from_chars(number.data(), number.data() + number.size(), port);
    const bool plain = wrong == std::errc() && stopped == number.data() + number.size();
    if (plain && files_.first_line(device_ / "ports" / number / "link_layer") == "Ethernet") ports.push_back(port);
  }
  std::sort(ports.begin(), ports.end());
  return ports;
}

std::optional<int> Sysfs::rate_mbps(int number) const {
  const std::string line = files_.first_line(port(number) / "rate").value_or("");
  double rate = 0;
  const auto [stopped, wrong] = std::from_chars(line.data(), line.data() + line.size(), rate);
  const std::string unit = line.substr(std::size_t(stopped - line.data()));
  if (wrong != std::errc() || unit.rfind(" Gb/sec", 0) != 0 || !(rate > 0 && rate < 1e6)) return std::nullopt;
  return int(rate * 1000 + 0.5);
}

bool Sysfs::knows_gid_types(int number) const {
  return files_.is_folder(port(number) / "gid_attrs/types");
}

GidType Sysfs::gid_type(int number, int index) const {
  const auto line = files_.first_line(port(number) / "gid_attrs/types" / std::to_string(index));
  if (!line) return GidType::unknown;
  if (line->find("RoCE v2") != std::string::npos) return GidType::roce_v2;
  return line->find("RoCE v1") != std::string::npos ? GidType::roce_v1 : GidType::unknown;
}

bool Sysfs::interface_is_elsewhere() const {
  return files_.is_empty_folder(device_ / "device/net");
}

std::string Sysfs::physical_function() const {
  return files_.real_path(device_ / "device/physfn").filename().string();
}

bool Sysfs::peer_memory() const {
  for (const char* module : {"kernel/mm/memory_peers/nv_mem/version", "kernel/mm/memory_peers/nv_mem_nc/version",
                             "module/nvidia_peermem/version"}) {
    if (files_.exists(module)) return true;
  }
  return false;
}

}  // namespace weft::devices
