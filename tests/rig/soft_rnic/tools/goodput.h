// How many bytes a second some queue pairs of one connection carry together.
#pragma once

#include <chrono>
#include <cstddef>

#include "tests/rig/soft_rnic/tools/endpoint.h"

namespace weft::soft_rnic {

struct GoodputPlan {
  std::size_t queue_pairs = 1;  // the first so many of the endpoint
  std::uint32_t message_bytes = 16 * 1024;
  std::size_t outstanding_bytes = 4 << 20;  // over all queue pairs together
  std::chrono::milliseconds warm_up{300};
  std::chrono::milliseconds duration{1000};
};

// Writes without pause and counts what completes after the warm-up; returns when everything posted has completed.
// Mbit/s.
Result<double> measure_goodput_mbps(Endpoint& endpoint, const GoodputPlan& plan);

}  // namespace weft::soft_rnic
