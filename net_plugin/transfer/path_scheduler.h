// Which path takes the next piece. Pure: no verbs, no clock of its own; times are nanoseconds of any steady clock.
//
// Every path is judged by what it did. Of each piece we know how long it took and how many bytes were under way on its
// path when it was posted; from these come the time per byte of each path and, of all together, the rate and the
// shortest time, which is the delay with no queue. An idle path may always take a piece. A path that holds one may take
// another
//   * while all paths together hold less than rate x delay and a little more: the link is long, or there are few paths,
//   or
//   * while what it holds takes clearly less time than pieces do on average: it is less crowded than the others.
// A piece goes to the next idle path that is as fast as the average; where there is none, of a few idle ones, and else
// of a few that may take another, to the one where it is expected to arrive first. The rest of a message stays with the
// sender, so that paths which turn out faster take more of it.
// Towards the end of what there is to send, a path on which a piece would arrive after all the rest is left out. A path
// on a crowded spine therefore takes less, a path that stands still takes one piece.
#pragma once

#include <bit>
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

  // Whether so many bytes wait or are under way that no good path is too late for a piece of `bytes`. Stays as it is
  // while pieces are handed out.
  bool plenty(std::size_t bytes, std::size_t waiting) const;
  // Idle paths as fast as the average, the next in turn first; none: `paths` is 0. While there is plenty they take the
  // place of choose(): each holds() a piece, and then they are taken().
  struct Turn {
    int first = 0;
    std::uint64_t paths = 0;  // bit i: path first + i
    int next() const { return first + std::countr_zero(paths); }
  };
  Turn next_good() const;
  std::size_t holds(int path, std::size_t bytes);  // as posted()
  void taken(const Turn& which);

  // The path for a piece of `bytes`, with `left` more bytes to come after it, or -1: wait until something completes.
  // Looks at a few paths only, others the next time: it is asked in every test of a request that waits.
  [[gnu::noinline]] int choose(std::size_t bytes, std::size_t left);  // hardly ever comes to that: see plenty()

  // Whether the times of the piece that goes to `path` are worth a look at the clock. Asked once for each piece. Small
  // ones say more about the fixed part of a round trip than about a path's share of the link; messages that go whole
  // come too often to be timed; and of a path that does what it is expected to, a sample is enough.
  bool measures(int path, std::size_t bytes, bool whole_message);

  // Bytes under way on the path including this piece: keep it and give it back with completed().
  std::size_t posted(int path, std::size_t bytes);
  // `posted_at` 0: not measured.
  void completed(int path, std::size_t bytes, std::size_t under_way, Nanoseconds posted_at, Nanoseconds now);

  int paths() const { return count_; }
  std::size_t under_way(int path) const { return paths_[std::size_t(path)].under_way; }
  // What a piece takes at present, on average over the paths.
  Nanoseconds piece_time() const { return Nanoseconds(piece_time_); }

 private:
  // Of a good path a piece is measured after so many bytes.
  static constexpr std::size_t kSampleEvery = 64 * 1024;

  struct Path {
    std::size_t under_way = 0;
    std::size_t unmeasured = kSampleEvery;  // bytes since the latest piece that was measured
    double time_per_byte = 0;               // nanoseconds; 0: nothing measured yet
    double piece_time = 0;                  // nanoseconds
    Nanoseconds measured_at = 0;
  };
  // The best of the paths looked at so far; late ones apart.
  struct Choice {
    int best = -1, late = -1;
    double best_time = 0, late_time = 0;
  };
  // Sixty-four paths, a bit each.
  struct Word {
    std::uint64_t idle = 0;
    std::uint64_t good = 0;  // as fast as the average, as far as is known
  };
  // Of those that `bits_of` a word shows, the paths from `from` on in the first word that has any, round to the
  // beginning.
  template <class BitsOf>
  Turn next(int from, BitsOf bits_of) const;
  int next_idle(int from) const;
  double expected(const Path& path, std::size_t bytes) const;
  [[gnu::noinline]] void measured(int path, std::size_t under_way, Nanoseconds posted_at, Nanoseconds now);
  bool less_crowded(const Path& path) const;
  void weigh(int index, std::size_t bytes, double rest, Choice& choice) const;

  int count_ = 0;  // of the paths: asked for with every piece
  std::vector<Path> paths_;
  double piece_time_ = 0;
  double rate_ = 0;   // bytes per nanosecond, of all paths together
  double delay_ = 0;  // nanoseconds; 0: not known
  Nanoseconds delay_at_ = 0;
  std::size_t under_way_ = 0;
  Nanoseconds latest_ = 0;  // completion
  int turn_ = 0;            // where the search starts: equal paths take turns
  int busy_turn_ = 0;       // the same among paths that hold something
  std::vector<Word> words_;
  std::size_t plenty_ = 0;  // bytes outstanding with which no good path is late, as far as the delay goes
};

}  // namespace weft::transfer
