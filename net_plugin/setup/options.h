// What the setup needs of the settings (common/settings), in the units of the verbs manual.
#pragma once

#include <chrono>
#include <cstdint>

#include "net_plugin/transfer/piece_plan.h"

namespace weft::setup {

struct Options {
  int paths = 24;                    // a connection's queue pairs at most, for each pair of devices
  int paths_per_peer = 48;           // of all connections to one peer NIC, as far as they have two each
  int least_paths = 2;               // that a connection gets however many share
  std::size_t grow_after = 1 << 20;  // bytes sent before a connection gets more than its first path; 0: at once
  std::uint64_t seed = 0;            // for source ports
  std::uint8_t timeout = 20;         // local ACK timeout, 4.096 us * 2^n
  std::uint8_t retry_count = 7;
  std::uint8_t traffic_class = 0;         // of data
  std::uint8_t record_traffic_class = 0;  // of clear-to-send records, sent by the receiver
  std::uint8_t service_level = 0;
  std::uint16_t partition_key_index = 0;
  std::chrono::milliseconds connect_timeout{20'000};
  std::size_t piece_bytes = 0;   // 0: automatic
  std::size_t incast_bytes = 0;  // on offer through one NIC; 0: no limit
  bool extended_establishment = true;
  bool relaxed_ordering = true;
  bool flush = true;  // NCCL_GDR_FLUSH_DISABLE=1 turns it off
};

}  // namespace weft::setup
