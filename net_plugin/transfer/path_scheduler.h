// Which path takes the next piece. Pure: no verbs, no clock of its own; times are nanoseconds of any steady clock.
//
// Every path is judged by what it did: the time a piece took divided by the bytes that were under way on the path when
// the piece was posted is the path's time per byte, queueing behind other traffic of the same spine included. A piece
// goes where it is expected to arrive first, and only while that path's queue is short: the rest of the message stays
// with the sender, so that paths which turn out faster take more of it. A path on a crowded spine therefore takes less,
// a path that stands still takes one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::transfer {

using Nanoseconds = std::uint64_t;

class PathScheduler {
 public:
  explicit PathScheduler(int paths);

  // The path for a piece of `bytes`, or -1: wait until something completes.
  int choose(std::size_t bytes, Nanoseconds now) const;

  // Bytes under way on the path including this piece: keep it and give it back with completed().
  std::size_t posted(int path, std::size_t bytes);
  void completed(int path, std::size_t bytes, std::size_t under_way, Nanoseconds posted_at, Nanoseconds now);

  int paths() const { return int(paths_.size()); }
  std::size_t under_way(int path) const { return paths_[std::size_t(path)].under_way; }
  // The queue that a path may have, as the time that it takes to drain.
  Nanoseconds depth() const;

 private:
  struct Path {
    std::size_t under_way = 0;
    double time_per_byte = 0;  // nanoseconds; 0: nothing measured yet
    Nanoseconds measured_at = 0;
  };
  double expected(const Path& path, std::size_t bytes) const;

  std::vector<Path> paths_;
  // What a piece takes on a path, on average over the paths: the time that its bytes wait for their share of the link.
  double piece_time_ = 0;
  int turn_ = 0;  // where the search starts: equal paths take turns
};

}  // namespace weft::transfer
