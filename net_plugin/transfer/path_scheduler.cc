#include "net_plugin/transfer/path_scheduler.h"

#include <algorithm>

namespace weft::transfer {
namespace {

// Weight of the newest measurement of a path.
constexpr double kWeight = 0.25;
// Weight of the newest measurement of any path in the average over all.
constexpr double kAverageWeight = 1.0 / 16;
// One that took more than so many times the average counts as that long: pieces that hung on a path which was down must
// not let the others queue.
constexpr double kOutlier = 1.5;
// A path is less crowded than the others when its pieces take less than this part of what pieces take on average. It
// must stay below 1: were paths equal, a queue would otherwise lengthen the average and the average the queue.
constexpr double kClearlyLess = 0.9;
// So many pieces more than rate x delay may be under way: between a completion and the next post the link must not fall
// idle.
constexpr double kFewPieces = 2;
// Smaller pieces say more about the fixed part of a round trip than about a path's share of the link.
constexpr std::size_t kSmallestMeasured = 4096;
// Paths may become longer: what is known of the delay grows by half in so many nanoseconds, if nothing shorter comes.
// Much sooner, and a queue that never empties would pass for delay.
constexpr double kDelayAge = 60e9;
// A path is left out towards the end when its piece would arrive so many times later than all the rest …
constexpr double kTooLate = 1.5;
// … unless its measurement is older than so many times what it said.
constexpr double kStale = 8.0;

}  // namespace

PathScheduler::PathScheduler(int paths, int most) {
  paths_.reserve(std::size_t(std::max(paths, most)));
  paths_.resize(std::size_t(paths));
}

void PathScheduler::grow(int paths) {
  paths_.resize(std::size_t(paths));
  // Messages are cut into smaller pieces now.
  piece_time_ = 0;
}

double PathScheduler::expected(const Path& path, std::size_t bytes) const {
  return std::max(delay_, path.time_per_byte * double(path.under_way + bytes));
}

bool PathScheduler::may_queue(const Path& path, std::size_t bytes) const {
  if (path.time_per_byte == 0) return false;
  if (double(under_way_ + bytes) <= rate_ * delay_ + kFewPieces * double(bytes)) return true;
  // Its pieces may wait behind those of other paths, however few it holds; and it may have stopped with many.
  return std::max(path.piece_time, path.time_per_byte * double(path.under_way)) < kClearlyLess * piece_time_;
}

int PathScheduler::choose(std::size_t bytes, std::size_t left, Nanoseconds now) const {
  const int count = int(paths_.size());
  const double rest = rate_ > 0 ? double(under_way_ + bytes + left) / rate_ : 0;
  int best = -1, late = -1;
  double best_time = 0, late_time = 0;
  for (int i = 0; i < count; i++) {
    int candidate = turn_ + i;
    if (candidate >= count) candidate -= count;
    const Path& path = paths_[std::size_t(candidate)];
    if (path.under_way != 0 && !may_queue(path, bytes)) continue;
    const double time = expected(path, bytes);
    if (time > kTooLate * rest && now - path.measured_at < Nanoseconds(kStale * time)) {
      if (late < 0 || time < late_time) {
        late = candidate;
        late_time = time;
      }
    } else if (best < 0 || time < best_time) {
      best = candidate;
      best_time = time;
    }
  }
  // With nothing under way nothing will complete either: the least late path then has to do.
  return best < 0 && pieces_ == 0 ? late : best;
}

std::size_t PathScheduler::posted(int path, std::size_t bytes) {
  turn_ = (path + 1) % int(paths_.size());
  pieces_++;
  under_way_ += bytes;
  return paths_[std::size_t(path)].under_way += bytes;
}

void PathScheduler::completed(int index, std::size_t bytes, std::size_t under_way, Nanoseconds posted_at,
                              Nanoseconds now) {
  Path& path = paths_[std::size_t(index)];
  path.under_way -= bytes;
  under_way_ -= bytes;
  pieces_--;
  if (bytes < kSmallestMeasured) return;
  const Nanoseconds took = std::max<Nanoseconds>(1, now - posted_at);
  const double sample = double(took) / double(under_way);
  path.measured_at = now;
  if (path.time_per_byte == 0) {
    path.time_per_byte = sample;
    path.piece_time = double(took);
  } else {
    rate_ -= 1 / path.time_per_byte;
    path.time_per_byte += kWeight * (sample - path.time_per_byte);
    path.piece_time += kWeight * (double(took) - path.piece_time);
  }
  rate_ = std::max(0.0, rate_) + 1 / path.time_per_byte;
  const double aged = delay_ * (1 + double(now - delay_at_) / (2 * kDelayAge));
  delay_ = delay_ == 0 ? double(took) : std::min(aged, double(took));
  delay_at_ = now;
  if (piece_time_ == 0)
    piece_time_ = double(took);
  else
    piece_time_ += kAverageWeight * (std::min(double(took), kOutlier * piece_time_) - piece_time_);
}

}  // namespace weft::transfer
