#include "net_plugin/transfer/path_scheduler.h"

#include <algorithm>
#include <bit>

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
// So many paths are looked at for a piece: with more, the piece would cost more than it gains.
constexpr int kLooks = 4;
// A path is good while its bytes take no longer than so many times what they do on average.
constexpr double kGoodEnough = 1.5;
constexpr std::size_t kSmallestPart = 4096, kSmallestWhole = 8192;
// Paths may become longer: what is known of the delay grows by half in so many nanoseconds, if nothing shorter comes.
// Much sooner, and a queue that never empties would pass for delay.
constexpr double kDelayAge = 60e9;
// A path is left out towards the end when its piece would arrive so many times later than all the rest …
constexpr double kTooLate = 1.5;
// … unless its measurement is older than so many times what it said.
constexpr double kStale = 8.0;
static_assert(kGoodEnough <= kTooLate, "plenty() takes a good path for one that is not late");

std::uint64_t bit(int path) {
  return std::uint64_t(1) << path % 64;
}

}  // namespace

PathScheduler::PathScheduler(int paths, int most) {
  paths_.reserve(std::size_t(std::max(paths, most)));
  words_.resize((std::size_t(std::max(paths, most)) + 63) / 64);
  grow(paths);
}

void PathScheduler::grow(int paths) {
  for (std::size_t i = paths_.size(); i < std::size_t(paths); i++) {
    words_[i / 64].idle |= bit(int(i));
    words_[i / 64].good |= bit(int(i));
  }
  paths_.resize(std::size_t(paths));
  count_ = paths;
  // Messages are cut into smaller pieces now.
  piece_time_ = 0;
}

double PathScheduler::expected(const Path& path, std::size_t bytes) const {
  return std::max(delay_, path.time_per_byte * double(path.under_way + bytes));
}

// Its pieces may wait behind those of other paths, however few it holds; and it may have stopped with many.
bool PathScheduler::less_crowded(const Path& path) const {
  return std::max(path.piece_time, path.time_per_byte * double(path.under_way)) < kClearlyLess * piece_time_;
}

void PathScheduler::weigh(int index, std::size_t bytes, double rest, Choice& choice) const {
  const Path& path = paths_[std::size_t(index)];
  const double time = expected(path, bytes);
  if (time > kTooLate * rest && latest_ - path.measured_at < Nanoseconds(kStale * time)) {
    if (choice.late < 0 || time < choice.late_time) {
      choice.late = index;
      choice.late_time = time;
    }
  } else if (choice.best < 0 || time < choice.best_time) {
    choice.best = index;
    choice.best_time = time;
  }
}

template <class BitsOf>
PathScheduler::Turn PathScheduler::next(int from, BitsOf bits_of) const {
  std::size_t word = std::size_t(from) / 64;
  std::uint64_t bits = bits_of(words_[word]) & ~std::uint64_t(0) << from % 64;
  for (std::size_t i = 0; bits == 0 && i < words_.size(); i++) {
    word = word + 1 == words_.size() ? 0 : word + 1;
    bits = bits_of(words_[word]);
  }
  return {int(word) * 64, bits};
}

int PathScheduler::next_idle(int from) const {
  const Turn turn = next(from, [](const Word& word) { return word.idle; });
  return turn.paths != 0 ? turn.next() : -1;
}

PathScheduler::Turn PathScheduler::next_good() const {
  return next(turn_, [](const Word& word) { return word.idle & word.good; });
}

void PathScheduler::taken(const Turn& which) {
  words_[std::size_t(which.first) / 64].idle &= ~which.paths;
  const int after = which.first + int(std::bit_width(which.paths));
  turn_ = after == count_ ? 0 : after;
}

std::size_t PathScheduler::holds(int path, std::size_t bytes) {
  under_way_ += bytes;
  return paths_[std::size_t(path)].under_way += bytes;
}

// A good path is late when its piece, at kGoodEnough times the average, takes longer than kTooLate times all that is
// outstanding: not while that is a piece for each path.
bool PathScheduler::plenty(std::size_t bytes, std::size_t waiting) const {
  const std::size_t outstanding = under_way_ + waiting;
  return outstanding >= plenty_ && outstanding >= bytes * std::size_t(count_);
}

int PathScheduler::choose(std::size_t bytes, std::size_t left) {
  if (plenty(bytes, bytes + left)) {
    if (const Turn turn = next_good(); turn.paths != 0) return turn.next();
  }
  const int count = count_;
  const double rest = rate_ > 0 ? double(under_way_ + bytes + left) / rate_ : 0;
  Choice choice;
  int first = -1, candidate = turn_;
  for (int i = 0; i < kLooks; i++) {
    candidate = next_idle(candidate);
    if (candidate < 0 || candidate == first) break;
    if (first < 0) first = candidate;
    weigh(candidate, bytes, rest, choice);
    candidate = candidate + 1 == count ? 0 : candidate + 1;
  }
  if (choice.best >= 0 || under_way_ == 0) return choice.best >= 0 ? choice.best : choice.late;
  // All of them late: others next time.
  if (first >= 0) turn_ = candidate < 0 ? first : candidate;
  const bool room = double(under_way_ + bytes) <= rate_ * delay_ + kFewPieces * double(bytes);
  for (int i = 0; i < std::min(kLooks, count); i++) {
    busy_turn_ = busy_turn_ + 1 == count ? 0 : busy_turn_ + 1;
    const Path& path = paths_[std::size_t(busy_turn_)];
    if (path.under_way == 0 || path.time_per_byte == 0 || (!room && !less_crowded(path))) continue;
    weigh(busy_turn_, bytes, rest, choice);
  }
  return choice.best;
}

bool PathScheduler::measures(int index, std::size_t bytes, bool whole_message) {
  if (bytes < (whole_message ? kSmallestWhole : kSmallestPart)) return false;
  Path& path = paths_[std::size_t(index)];
  path.unmeasured += bytes;
  if (path.unmeasured < kSampleEvery && (words_[std::size_t(index) / 64].good & bit(index)) != 0) return false;
  path.unmeasured = 0;
  return true;
}

std::size_t PathScheduler::posted(int path, std::size_t bytes) {
  taken({path / 64 * 64, bit(path)});
  return holds(path, bytes);
}

void PathScheduler::completed(int index, std::size_t bytes, std::size_t under_way, Nanoseconds posted_at,
                              Nanoseconds now) {
  Path& path = paths_[std::size_t(index)];
  path.under_way -= bytes;
  under_way_ -= bytes;
  if (path.under_way == 0) words_[std::size_t(index) / 64].idle |= bit(index);
  if (posted_at != 0) measured(index, under_way, posted_at, now);
}

void PathScheduler::measured(int index, std::size_t under_way, Nanoseconds posted_at, Nanoseconds now) {
  Path& path = paths_[std::size_t(index)];
  latest_ = now;
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
  // rate_ is the sum over the paths of what each carries, hence count / rate_ the average time of a byte.
  Word& word = words_[std::size_t(index) / 64];
  const bool good = path.time_per_byte * rate_ <= kGoodEnough * double(count_);
  word.good = good ? word.good | bit(index) : word.good & ~bit(index);
  const double aged = delay_ * (1 + double(now - delay_at_) / (2 * kDelayAge));
  delay_ = delay_ == 0 ? double(took) : std::min(aged, double(took));
  delay_at_ = now;
  plenty_ = std::size_t(delay_ * rate_ / kTooLate);
  if (piece_time_ == 0)
    piece_time_ = double(took);
  else
    piece_time_ += kAverageWeight * (std::min(double(took), kOutlier * piece_time_) - piece_time_);
}

}  // namespace weft::transfer
