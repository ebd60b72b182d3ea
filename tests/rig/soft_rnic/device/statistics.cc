#include "tests/rig/soft_rnic/device/statistics.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace weft::soft_rnic {
namespace {

std::string dotted(std::uint32_t address) {
  char text[INET_ADDRSTRLEN] = {};
  in_addr value{address};
  inet_ntop(AF_INET, &value, text, sizeof text);
  return text;
}

}  // namespace

void NicStatistics::add(const NicStatistics& other) {
  for (const auto& [key, port] : other.ports_) {
    PortStatistics& sum = ports_[key];
    sum.bytes += port.bytes;
    sum.packets += port.packets;
    sum.retransmitted += port.retransmitted;
  }
}

std::string statistics_json(const std::string& process, int pid, const std::vector<NamedStatistics>& nics) {
  nlohmann::ordered_json document = {{"process", process}, {"pid", pid}, {"nics", nlohmann::ordered_json::array()}};
  for (const NamedStatistics& nic : nics) {
    nlohmann::ordered_json ports = nlohmann::ordered_json::array();
    for (const auto& [key, port] : nic.statistics.ports()) {
      ports.push_back({{"sport", key.first},
                       {"peer", dotted(key.second)},
                       {"bytes", port.bytes},
                       {"packets", port.packets},
                       {"retransmitted", port.retransmitted}});
    }
    document["nics"].push_back({{"nic", nic.nic}, {"ports", std::move(ports)}});
  }
  return document.dump() + "\n";
}

Result<void> write_statistics(const std::string& folder, int pid, const std::string& text) {
  const std::string path = folder + "/" + std::to_string(pid) + ".json";
  const std::string fresh = path + ".new";
  std::ofstream file(fresh, std::ios::trunc);
  file << text;
  file.close();
  if (!file) return system_error("cannot write", errno, fresh);
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return system_error("cannot replace", errno, path);
  return {};
}

}  // namespace weft::soft_rnic
