#include "bench/weft/devices/devices_command.h"

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "bench/weft/demo/demo_command.h"
#include "bench/weft/devices/record.h"
#include "bench/weft/save_tree/tar.h"
#include "common/text/format.h"

namespace weft::devices_command {
namespace {

// What the settings have to say beside the search.
void add_settings(Report& report, const settings::Loaded& loaded) {
  report.warnings = loaded.warnings;
  report.remarks.insert(report.remarks.begin(), loaded.remarks.begin(), loaded.remarks.end());
  if (loaded.settings.disable) report.remarks.push_back("WEFT_DISABLE=1: the plugin shows NCCL no devices at all");
}

Result<void> print(const Report& report, const std::string& json) {
  const std::string text = to_json(report).dump(1) + "\n";
  if (json == "-") {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  std::fputs(table(report).c_str(), stdout);
  if (json.empty()) return {};
  std::ofstream file(json);
  file << text;
  file.close();
  if (!file) return system_error("cannot write", errno, json);
  return {};
}

int save(Host host, const std::string& file, const std::string& json) {
  const settings::Loaded loaded = host.loaded;
  save_tree::Substitutes substitutes(names_of_this_host());
  auto recorded = record(std::move(host), substitutes);
  if (!recorded) return demo::complain(recorded.error(), demo::kFailed);
  add_settings(recorded->report, loaded);
  if (auto printed = print(recorded->report, json); !printed) return demo::complain(printed.error(), demo::kUsage);
  if (auto written = save_tree::write_tar(recorded->tree, file); !written)
    return demo::complain(written.error(), written.error().code != 0 ? demo::kUsage : demo::kFailed);
  std::fprintf(stderr, "saved: %s; addresses, GUIDs and names in it are stand-ins\n", file.c_str());
  return demo::kDone;
}

}  // namespace

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

int run(const Options& options) {
  auto host = open_host();
  if (!host) return demo::complain(host.error(), demo::kUsage);
  if (options.save_tree) return save(host.take(), *options.save_tree, options.json);
  const settings::Loaded loaded = host->loaded;
  Report report = look(host.take());
  add_settings(report, loaded);
  if (auto printed = print(report, options.json); !printed) return demo::complain(printed.error(), demo::kUsage);
  return report.any_usable() ? demo::kDone : demo::kFailed;
}

}  // namespace weft::devices_command
