#include "net_plugin/transfer/path_scheduler.h"

#include <algorithm>

namespace weft::transfer {
namespace {

// Weight of the newest measurement of a path.
constexpr double kWeight = 0.25;
// Weight of the newest measurement of any path in the average over all.
constexpr double kAverageWeight = 1.0 / 16;
// A path's queue may last so many times what a piece takes on average. A path which is alone on its spine is faster than
// the average and so holds several pieces, which keeps it from running dry between a completion and the next post. More
// would let a message wait behind another on one path: NCCL's rings then wait for it.
constexpr double kDepth = 1.0;
// Smaller pieces say more about the fixed part of a round trip than about a path's share of the link.
constexpr std::size_t kSmallestMeasured = 4096;
// An idle path is passed over while its piece would take so many times longer than the queue of the others may last …
constexpr double kTooSlow = 6.0;
// … but tried again when its measurement is older than so many times what it said.
constexpr double kStale = 8.0;

}  // namespace

PathScheduler::PathScheduler(int paths) : paths_(std::size_t(paths)) {}

double PathScheduler::expected(const Path& path, std::size_t bytes) const {
  return path.time_per_byte * double(path.under_way + bytes);
}

Nanoseconds PathScheduler::depth() const {
  return Nanoseconds(kDepth * piece_time_);
}

int PathScheduler::choose(std::size_t bytes, Nanoseconds now) const {
  int best = -1, slow = -1;
  double best_time = 0, slow_time = 0;
  bool all_idle = true;
  const double deep = double(depth());
  for (int i = 0; i < int(paths_.size()); i++) {
    const int candidate = (turn_ + i) % int(paths_.size());
    const Path& path = paths_[std::size_t(candidate)];
    const double time = expected(path, bytes);
    if (path.under_way == 0) {
      const bool fresh = now - path.measured_at < Nanoseconds(kStale * time);
      if (time > kTooSlow * deep && fresh) {
        if (slow < 0 || time < slow_time) {
          slow = candidate;
          slow_time = time;
        }
        continue;
      }
    } else if (path.time_per_byte == 0 || path.time_per_byte * double(path.under_way) >= deep) {
      all_idle = false;
      continue;
    } else {
      all_idle = false;
    }
    if (best < 0 || time < best_time) {
      best = candidate;
      best_time = time;
    }
  }
  // With nothing under way nothing will complete either: the least slow path then has to do.
  return best < 0 && all_idle ? slow : best;
}

std::size_t PathScheduler::posted(int path, std::size_t bytes) {
  turn_ = (path + 1) % int(paths_.size());
  return paths_[std::size_t(path)].under_way += bytes;
}

void PathScheduler::completed(int index, std::size_t bytes, std::size_t under_way, Nanoseconds posted_at,
                              Nanoseconds now) {
  Path& path = paths_[std::size_t(index)];
  path.under_way -= bytes;
  if (bytes < kSmallestMeasured) return;
  const double sample = double(now - posted_at) / double(under_way), piece = sample * double(bytes);
  path.time_per_byte = path.time_per_byte == 0 ? sample : path.time_per_byte + kWeight * (sample - path.time_per_byte);
  path.measured_at = now;
  piece_time_ = piece_time_ == 0 ? piece : piece_time_ + kAverageWeight * (piece - piece_time_);
}

}  // namespace weft::transfer
