// The software NIC's own measurements that figures rest on: the calibration gate on a fabric, and its ceiling on this
// machine. tests/rig/soft_rnic/README.md says what they mean.
#pragma once

#include <string>

#include "common/result/result.h"

namespace weft::figures {

// What one queue pair carries over what eight carry between the first hosts of two leaves, with nothing else on the
// fabric. An error's code is ENOENT where something is not built.
struct Gate {
  double one_mbps = 0;
  double eight_mbps = 0;
  double ratio = 0;
};
Result<Gate> calibration_gate(const std::string& rig, const std::string& scenario, const std::string& near_host,
                              const std::string& far_host);
Result<Gate> parse_gate(const std::string& output);

// One queue pair, MTU 4096, two processes on this machine's loopback.
struct Ceiling {
  double gigabytes_per_second = 0;
  double one_way_us = 0;  // median of 8-byte writes
};
Result<Ceiling> ceiling(const std::string& rig);
Result<Ceiling> parse_ceiling(const std::string& output);

}  // namespace weft::figures
