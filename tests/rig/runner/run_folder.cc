#include "tests/rig/runner/run_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/text/format.h"

namespace weft::rig {
namespace {

using Json = nlohmann::ordered_json;

Result<void> write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return system_error("cannot write", errno, path);
  return {};
}

// PCI addresses: switch i has bus i+1, its NIC bus 0x40+i, its GPUs 0x10, 0x20, ….
std::string nic_bus(int rail) {
  return text::format("0000:{:02x}:00.0", 0x41 + rail);
}
std::string gpu_bus(int gpu) {
  return text::format("0000:{:02x}:00.0", 0x10 + 0x10 * gpu);
}

std::uint64_t nic_guid(int host, int rail) {
  return 0x0200'00ff'fe00'0000 + std::uint64_t(host + 1) * 0x100 + std::uint64_t(rail) + 1;
}

Json gids_json(const Scenario& scenario, const fabric::Nic& nic) {
  Json gids = Json::array();
  const bool unusable = fabric::host_name(nic.host) == scenario.unusable_host;
  std::istringstream words(scenario.nic.gids);
  for (std::string word; std::getline(words, word, ',');) {
    std::string gid = "::";
    if (!unusable && word == "link_local")
      gid = text::format("fe80::200:ff:fe00:{:x}", (nic.host + 1) * 0x100 + nic.rail + 1);
    if (!unusable && word == "ipv4") gid = "::ffff:" + nic.address;
    gids.push_back({{"gid", gid}, {"type", "RoCE v2"}});
  }
  return gids;
}

Json nic_json(const Scenario& scenario, const fabric::Nic& nic) {
  const NicModel& model = scenario.nic;
  return {{"name", scenario.nic_name(nic.rail)},
          {"netdev", nic.netdev},
          {"address", nic.address},
          {"prefix_length", 24},
          {"mac", text::format("02:00:00:00:{:02x}:{:02x}", nic.host + 1, nic.rail + 1)},
          {"pci", nic_bus(nic.rail)},
          {"guid", text::format("0x{:016x}", nic_guid(nic.host, nic.rail))},
          {"speed_mbps", model.speed_mbps != 0 ? model.speed_mbps : scenario.topology.nic_mbps},
          {"mtu", model.mtu},
          {"gids", gids_json(scenario, nic)},
          {"caps",
           {{"max_qp", model.max_qp},
            {"max_srq", model.max_srq},
            {"max_inline", model.max_inline},
            {"ece", model.ece},
            {"modify_udp_sport", model.modify_udp_sport}}},
          {"window_bytes", model.window_bytes},
          {"late_gpu_writes", model.late_gpu_writes}};
}

Json host_json(const Scenario& scenario, const RunFolder& folder, int host) {
  Json out = {{"host", fabric::host_name(host)}, {"gpus", Json::array()}, {"nics", Json::array()}};
  for (int gpu = 0; gpu < scenario.gpus_per_host; gpu++) {
    out["gpus"].push_back({{"bus_id", gpu_bus(gpu)},
                           {"compute_capability", scenario.compute_capability},
                           {"gpudirect", scenario.gpudirect},
                           {"dmabuf", scenario.dmabuf}});
  }
  for (int rail = 0; rail < scenario.topology.rails; rail++) {
    out["nics"].push_back(nic_json(scenario, fabric::nic_of(scenario.topology, host, rail)));
  }
  out["defects"] = scenario.defects;
  out["control"] = folder.path() + "/" + fabric::host_name(host) + ".control.json";
  out["statistics"] = folder.statistics_folder(host);
  return out;
}

Json operation_json(const rank::Operation& operation) {
  return {{"op", rank::kind_name(operation.kind)},
          {"bytes", operation.bytes},
          {"type", rank::element_name(operation.element)},
          {"reduction", rank::reduction_names()[std::size_t(operation.reduction)]},
          {"iterations", operation.iterations},
          {"warmup", operation.warmup},
          {"in_place", operation.in_place},
          {"root", operation.root},
          {"connections", operation.connections},
          {"messages", operation.messages},
          {"in_flight", operation.in_flight}};
}

Json rank_json(const Scenario& scenario, const RunFolder& folder, int rank) {
  Json out = {{"rank", rank},
              {"ranks", scenario.ranks()},
              {"device", scenario.gpu_of_rank(rank)},
              {"exchange", folder.exchange()},
              {"result", folder.result_file(rank)},
              {"time_limit_s", scenario.time_limit_s},
              {"operations", Json::array()}};
  for (const rank::Operation& operation : scenario.operations)
    out["operations"].push_back(operation_json(operation));
  return out;
}

// NCCL's topology file: one PCI switch for each NIC, with the NIC and its share of the GPUs. The same for all hosts.
std::string topology_xml(const Scenario& scenario) {
  const char* pci =
      "<pci busid=\"{}\" class=\"{}\" vendor=\"0x0001\" device=\"0x0001\" subsystem_vendor=\"0x0001\" "
      "subsystem_device=\"0x0001\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"";
  const auto open = [&](const std::string& bus, const char* type) {
    return text::format(fmt::runtime(pci), bus, type);
  };
  const int rails = scenario.topology.rails;
  std::string out =
      "<system version=\"1\">\n <cpu host_hash=\"0x0\" numaid=\"0\" affinity=\"00000000,00000003\" arch=\"x86_64\" "
      "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">\n";
  for (int rail = 0; rail < rails; rail++) {
    out += "  " + open(text::format("0000:{:02x}:00.0", rail + 1), "0x060400") + ">\n";
    for (int gpu = rail; gpu < scenario.gpus_per_host; gpu += rails)
      out += "   " + open(gpu_bus(gpu), "0x030200") + "/>\n";
    out += "   " + open(nic_bus(rail), "0x020700") + ">\n";
    out += text::format(
        "    <nic><net name=\"{}\" dev=\"{}\" speed=\"{}\" port=\"1\" latency=\"0.000000\" guid=\"0x{:x}\" "
        "maxconn=\"65536\" gdr=\"{}\"/></nic>\n",
        scenario.nic_name(rail), rail,
        scenario.nic.speed_mbps != 0 ? scenario.nic.speed_mbps : scenario.topology.nic_mbps, rail + 1,
        scenario.gpudirect || scenario.dmabuf ? 1 : 0);
    out += "   </pci>\n  </pci>\n";
  }
  return out + " </cpu>\n</system>\n";
}

}  // namespace

std::string RunFolder::kept_base() {
  const char* base = std::getenv("TMPDIR");
  return base && *base ? base : "/tmp";
}

Result<RunFolder> RunFolder::create(const std::string& base) {
  std::string name = base + "/weft-rig-XXXXXX";
  if (!mkdtemp(name.data())) return system_error("cannot make a folder for the run", errno, name);
  return RunFolder(name);
}

std::string RunFolder::host_file(int host) const {
  return text::format("{}/{}.host.json", path_, fabric::host_name(host));
}
std::string RunFolder::statistics_folder(int host) const {
  return text::format("{}/{}.statistics", path_, fabric::host_name(host));
}
std::string RunFolder::rank_file(int rank) const {
  return text::format("{}/rank{}.json", path_, rank);
}
std::string RunFolder::result_file(int rank) const {
  return text::format("{}/rank{}.result.json", path_, rank);
}
std::string RunFolder::log_file(int rank) const {
  return text::format("{}/rank{}.log", path_, rank);
}

Result<void> RunFolder::write(const Scenario& scenario) const {
  std::error_code problem;
  std::filesystem::create_directories(exchange(), problem);
  for (int host = 0; host < scenario.topology.hosts; host++) {
    std::filesystem::create_directories(statistics_folder(host), problem);
    auto written = write_control(scenario, host, std::vector<NicState>(std::size_t(scenario.topology.rails)));
    if (written) written = write_text(host_file(host), host_json(scenario, *this, host).dump(1));
    if (!written) return written;
  }
  for (int rank = 0; rank < scenario.ranks(); rank++) {
    if (auto written = write_text(rank_file(rank), rank_json(scenario, *this, rank).dump(1)); !written) return written;
  }
  return write_text(topology_file(), topology_xml(scenario));
}

Result<void> RunFolder::write_control(const Scenario& scenario, int host, const std::vector<NicState>& nics) const {
  Json out = {{"nics", Json::object()}};
  for (std::size_t rail = 0; rail < nics.size(); rail++) {
    out["nics"][scenario.nic_name(int(rail))] = {{"port", nics[rail].up ? "up" : "down"},
                                                 {"drop_ppm", nics[rail].drop_ppm}};
  }
  const std::string path = text::format("{}/{}.control.json", path_, fabric::host_name(host)), fresh = path + ".new";
  if (auto written = write_text(fresh, out.dump(1)); !written) return written;
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return system_error("cannot replace", errno, path);
  return {};
}

}  // namespace weft::rig
