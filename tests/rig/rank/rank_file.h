// What one rank is told to do. The runner writes the file; its form is described in tests/rig/rank/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/rank/element.h"
#include "tests/rig/rank/pattern.h"

namespace weft::rank {

enum class Kind {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  send_recv_ring,
  all_to_all,
  // Through the net interface alone, without NCCL (net_job.h).
  net_stream,     // the first half of the ranks send to the second half, rank by rank
  net_incast,     // all others send to rank 0
  net_ping_pong,  // as net_stream, and back, one message at a time
};

std::string kind_name(Kind kind);
std::vector<std::string> kind_names();
bool is_net(Kind kind);

struct Operation {
  Kind kind = Kind::all_reduce;
  std::size_t bytes = 0;  // of the larger of the send and the receive buffer of a rank
  Element element = Element::f32;
  Reduction reduction = Reduction::sum;
  int iterations = 1;  // timed and checked
  int warmup = 0;      // checked, not timed
  bool in_place = false;
  int root = 0;
  // net_*: per iteration and connection; `bytes` is the size of a message.
  int connections = 1;  // from a sender to its receiver
  int messages = 1;
  int in_flight = 4;
};

struct RankFile {
  int rank = 0;
  int ranks = 1;
  int device = 0;        // CUDA device of this host
  std::string exchange;  // folder that all ranks see
  std::string result;    // file to write
  int time_limit_s = 60;
  std::vector<Operation> operations;
};

Result<RankFile> read_rank_file(const std::string& path);

}  // namespace weft::rank
