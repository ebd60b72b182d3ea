// Which path takes the next piece. Pure: no verbs, no clock of its own; times are nanoseconds of any steady clock.
//
// Every path is judged by what it did. Of each piece we know how long it took and how many bytes were under way on its
// path when it was posted; from these come the time per byte of each path and, of all together, the rate and the
// shortest time, which is the delay with no queue. An idle path may always take a piece. A path that holds one may take
// another
//   * while all paths together hold less than rate x delay and a little more: the link is long, or there are few paths,
//   or
//   * while what it holds takes clearly less time than pieces do on average: it is less crowded than the others.
// Of a few idle paths, and where none is idle of a few that may take another, a piece goes where it is expected to
// arrive first; the rest of a message stays with the sender, so that paths which turn out faster take more of it.
// Towards the end of what there is to send, a path on which a piece would arrive after all the rest is left out. A path
// on a crowded spine therefore takes less, a path that stands still takes one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::transfer {

using Nanoseconds = std::uint64_t;

class PathScheduler {
 public:
  // `most`: so many paths may there be later; grow() then allocates nothing.
  explicit PathScheduler(int paths, int most = 0);
  // There are `paths` now, more than before.
  void grow(int paths);

  // The path for a piece of `bytes`, with `left` more bytes to come after it, or -1: wait until something completes.
  // Looks at a few paths only, others the next time: it is asked in every test of a request that waits.
  int choose(std::size_t bytes, std::size_t left);

  // Whether a piece's times are worth a look at the clock. Small ones say more about the fixed part of a round trip
  // than about a path's share of the link; messages that go whole come too often to be timed.
  static bool measures(std::size_t bytes, bool whole_message) {
    return bytes >= (whole_message ? kSmallestWhole : kSmallestPart);
  }

  // Bytes under way on the path including this piece: keep it and give it back with completed().
  std::size_t posted(int path, std::size_t bytes);
  // `posted_at` 0: not measured.
  void completed(int path, std::size_t bytes, std::size_t under_way, Nanoseconds posted_at, Nanoseconds now);

  int paths() const { return int(paths_.size()); }
  std::size_t under_way(int path) const { return paths_[std::size_t(path)].under_way; }
  // What a piece takes at present, on average over the paths.
  Nanoseconds piece_time() const { return Nanoseconds(piece_time_); }

 private:
  static constexpr std::size_t kSmallestPart = 4096, kSmallestWhole = 8192;

  struct Path {
    std::size_t under_way = 0;
    double time_per_byte = 0;  // nanoseconds; 0: nothing measured yet
    double piece_time = 0;     // nanoseconds
    Nanoseconds measured_at = 0;
  };
  // The best of the paths looked at so far; late ones apart.
  struct Choice {
    int best = -1, late = -1;
    double best_time = 0, late_time = 0;
  };
  double expected(const Path& path, std::size_t bytes) const;
  bool less_crowded(const Path& path) const;
  void weigh(int index, std::size_t bytes, double rest, Choice& choice) const;
  int next_idle(int from) const;

  std::vector<Path> paths_;
  double piece_time_ = 0;
  double rate_ = 0;   // bytes per nanosecond, of all paths together
  double delay_ = 0;  // nanoseconds; 0: not known
  Nanoseconds delay_at_ = 0;
  std::size_t under_way_ = 0;
  Nanoseconds latest_ = 0;           // completion
  int pieces_ = 0;                   // under way
  int turn_ = 0;                     // where the search starts: equal paths take turns
  int busy_turn_ = 0;                // the same among paths that hold something
  std::vector<std::uint64_t> idle_;  // one bit a path
};

}  // namespace weft::transfer
