#include "bench/weft/devices/devices_command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "bench/weft/demo/demo_command.h"
#include "common/text/format.h"
#include "net_plugin/setup/runtime.h"
#include "net_plugin/verbs/verbs.h"

namespace weft::devices_command {
namespace {

Report look() {
  Report report;
  const settings::Loaded loaded = settings::load();
  report.warnings = loaded.warnings;
  report.remarks = loaded.remarks;
  const auto log = [&report](setup::LogLevel, const std::string& line) { report.remarks.push_back(line); };
  const auto runtime = setup::Runtime::create(verbs::load(), loaded.settings, loaded.error_of(settings::Component::net),
                                              false, log, {loaded.settings.sysfs_root + "/sys", nullptr, nullptr});
  report.ports = runtime->ports();
  report.trouble = runtime->trouble();
  // The plugin logs a line for each device as well; here the table has them.
  std::erase_if(report.remarks, [](const std::string& line) { return line.rfind("device ", 0) == 0; });
  if (loaded.settings.disable) report.remarks.push_back("WEFT_DISABLE=1: the plugin shows NCCL no devices at all");
  return report;
}

}  // namespace

bool Report::any_usable() const {
  return !trouble && std::any_of(ports.begin(), ports.end(), [](const devices::Port& port) { return !port.unusable; });
}

std::string table(const Report& report) {
  std::string out;
  if (report.ports.empty())
    out += "No RoCE port on this host: NCCL would use another transport, or fail where NCCL_NET=Weft is set.\n";
  for (std::size_t i = 0; i < report.ports.size(); i++) {
    const devices::Port& port = report.ports[i];
    if (port.unusable) {
      out += text::format("{:>2}  {:<12} NOT USABLE  {}\n", i, port.name, port.unusable->text());
      continue;
    }
    out += text::format("{:>2}  {:<12} {:>7} Mbit/s  {}  MTU {}  GPU memory: {}  {}\n", i, port.name, port.speed_mbps,
                        devices::describe(port.gid), 128 << int(port.path_mtu), devices::describe_gpu_memory(port),
                        port.pci_path.empty() ? "no PCI function" : port.pci_path);
  }
  for (const std::string& remark : report.remarks)
    out += "    " + remark + "\n";
  for (const std::string& warning : report.warnings)
    out += "warning: " + warning + "\n";
  if (report.trouble) out += "error: " + report.trouble->text() + "\n";
  return out;
}

nlohmann::ordered_json to_json(const Report& report) {
  nlohmann::ordered_json out = {{"usable", report.any_usable()}, {"devices", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < report.ports.size(); i++) {
    const devices::Port& port = report.ports[i];
    nlohmann::ordered_json entry = {{"index", i},        {"name", port.name},    {"device", port.device},
                                    {"port", port.port}, {"pci", port.pci_path}, {"usable", !port.unusable}};
    if (port.unusable) {
      entry["reason"] = port.unusable->text();
    } else {
      entry["speed_mbps"] = port.speed_mbps;
      entry["gid"] = {{"index", port.gid.index}, {"type", "RoCE v2"}, {"address", devices::address_text(port.gid)}};
      entry["path_mtu"] = 128 << int(port.path_mtu);
      entry["gpu_memory"] = devices::describe_gpu_memory(port);
    }
    out["devices"].push_back(std::move(entry));
  }
  out["left_out"] = report.remarks;
  out["warnings"] = report.warnings;
  out["error"] = report.trouble ? nlohmann::ordered_json(report.trouble->text()) : nlohmann::ordered_json();
  return out;
}

int run(const std::string& json) {
  const Report report = look();
  const std::string text = to_json(report).dump(1) + "\n";
  if (json == "-") {
    std::fputs(text.c_str(), stdout);
  } else {
    std::fputs(table(report).c_str(), stdout);
    if (!json.empty()) {
      std::ofstream file(json);
      file << text;
      file.close();
      if (!file) return demo::complain(system_error("cannot write", errno, json), demo::kUsage);
    }
  }
  return report.any_usable() ? demo::kDone : demo::kFailed;
}

}  // namespace weft::devices_command
