#include "bench/weft/devices/look.h"

#include <algorithm>
#include <filesystem>

#include "bench/weft/save_tree/saved_files.h"
#include "net_plugin/setup/runtime.h"

namespace weft::devices_command {
namespace {

namespace fs = std::filesystem;

// As the host itself would say it.
std::string below_sys(const std::string& path, const std::string& sysfs) {
  std::error_code problem;
  const fs::path relative = fs::path(path).lexically_relative(fs::canonical(sysfs, problem));
  return relative.empty() || *relative.begin() == ".." ? path : ("/sys" / relative).string();
}

}  // namespace

bool Report::any_usable() const {
  return !trouble && std::any_of(ports.begin(), ports.end(), [](const devices::Port& port) { return !port.unusable; });
}

Result<Host> open_host() {
  settings::Loaded loaded = settings::load();
  const std::string root = loaded.settings.sysfs_root;
  const std::string sysfs = root + "/sys";
  if (root.empty() || !save_tree::is_saved_tree(root)) return Host{std::move(loaded), verbs::load(), sysfs};
  auto verbs = save_tree::recorded_verbs(root);
  if (!verbs) return verbs.take_error();
  return Host{settings::load(save_tree::recorded_settings(root)), verbs.take(), sysfs};
}

Report look(Host host, devices::FileTree::Observer observer) {
  Report report;
  const auto log = [&report](setup::LogLevel, const std::string& line) { report.remarks.push_back(line); };
  const auto runtime = setup::Runtime::create(std::move(host.verbs), host.loaded.settings,
                                              host.loaded.error_of(settings::Component::net), false, log,
                                              {devices::FileTree(host.sysfs, std::move(observer)), nullptr, nullptr});
  report.ports = runtime->ports();
  report.trouble = runtime->trouble();
  // The plugin logs a line for each device as well; here the table has them.
  std::erase_if(report.remarks, [](const std::string& line) { return line.rfind("device ", 0) == 0; });
  for (devices::Port& port : report.ports)
    port.pci_path = below_sys(port.pci_path, host.sysfs);
  return report;
}

}  // namespace weft::devices_command
