#include "tests/rig/soft_rnic/tools/goodput.h"

#include <algorithm>
#include <vector>

namespace weft::soft_rnic {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStuck{20000};

}  // namespace

Result<double> measure_goodput_mbps(Endpoint& endpoint, const GoodputPlan& plan) {
  const std::size_t depth = std::max<std::size_t>(plan.outstanding_bytes / plan.message_bytes / plan.queue_pairs, 2);
  std::size_t outstanding = 0;
  const auto post = [&](std::size_t queue_pair) -> Result<void> {
    ++outstanding;
    return endpoint.post_write(queue_pair, queue_pair, 0, plan.message_bytes);
  };
  for (std::size_t round = 0; round < depth; ++round) {
    for (std::size_t queue_pair = 0; queue_pair < plan.queue_pairs; ++queue_pair) {
      if (auto posted = post(queue_pair); !posted) return posted.take_error();
    }
  }
  const auto begin = Clock::now() + plan.warm_up;
  const auto end = begin + plan.duration;
  std::uint64_t counted = 0;
  Clock::time_point first{};
  Clock::time_point last{};
  while (outstanding > 0) {
    auto completion = endpoint.wait(kStuck);
    if (!completion) return completion.take_error();
    if (completion->status != IBV_WC_SUCCESS) {
      return Error{std::string("a write failed: ") + ibv_wc_status_str(completion->status), {}, EIO, {}};
    }
    --outstanding;
    const auto now = Clock::now();
    if (now >= end) continue;
    if (now >= begin) {
      // The first completion only starts the clock: what it reports was carried before.
      if (first == Clock::time_point{}) {
        first = now;
      } else {
        counted += plan.message_bytes;
      }
      last = now;
    }
    if (auto posted = post(completion->wr_id); !posted) return posted.take_error();
  }
  const double seconds = std::chrono::duration<double>(last - first).count();
  if (seconds <= 0) return Error{"too few completions to measure", {}, EIO, "measure for longer"};
  return static_cast<double>(counted) * 8 / seconds / 1e6;
}

}  // namespace weft::soft_rnic
