// One operation of the job: which part of which buffer goes where, and what must be there afterwards.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/rig/rank/libraries.h"
#include "tests/rig/rank/rank_file.h"

namespace weft::rank {

// A run of elements with one pattern in a rank's send or receive buffer.
struct Block {
  std::size_t offset = 0;  // bytes from the start of the buffer
  std::size_t count = 0;   // elements
  std::size_t first = 0;   // index of its first element in the pattern
  Pattern pattern;
};

// The layout of an operation for one rank and one iteration.
struct Layout {
  std::size_t send_bytes = 0;
  std::size_t receive_bytes = 0;
  std::vector<Block> send;     // what to fill in
  std::vector<Block> receive;  // what must come out; empty where this rank receives nothing
  // In place: where the send buffer lies in the receive buffer (or the other way round, whichever is smaller in the
  // larger).
  std::size_t in_place_offset = 0;
};

Layout layout(const Operation& operation, int rank, int ranks, std::uint64_t iteration);

// Enqueues the operation; returns NCCL's result code.
int enqueue(const Libraries& libraries, const Operation& operation, int rank, int ranks, const std::byte* send,
            std::byte* receive, Communicator communicator, Stream stream);

}  // namespace weft::rank
