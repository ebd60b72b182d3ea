// What a process sent, per NIC, source port and peer, for the rig's reports. Bytes are UDP payload bytes: headers,
// payload, padding and ICRC of requests and answers alike.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/result/result.h"

namespace weft::soft_rnic {

struct PortStatistics {
  std::uint64_t bytes = 0;
  std::uint64_t packets = 0;
  std::uint64_t retransmitted = 0;  // packets among them that were sent before
};

// Counters of one NIC; a reference returned by `of` stays valid. Not thread-safe.
class NicStatistics {
 public:
  // `peer` is an IPv4 address in network byte order.
  PortStatistics& of(std::uint16_t source_port, std::uint32_t peer) { return ports_[{source_port, peer}]; }
  const std::map<std::pair<std::uint16_t, std::uint32_t>, PortStatistics>& ports() const { return ports_; }
  void add(const NicStatistics& other);

 private:
  std::map<std::pair<std::uint16_t, std::uint32_t>, PortStatistics> ports_;
};

struct NamedStatistics {
  std::string nic;
  NicStatistics statistics;
};

// The text of <folder>/<pid>.json: {"process":…, "pid":…, "nics":[{"nic":…, "ports":[{"sport":…, "peer":…, "bytes":…,
// "packets":…, "retransmitted":…}]}]}.
std::string statistics_json(const std::string& process, int pid, const std::vector<NamedStatistics>& nics);

// Replaces <folder>/<pid>.json atomically.
Result<void> write_statistics(const std::string& folder, int pid, const std::string& text);

}  // namespace weft::soft_rnic
