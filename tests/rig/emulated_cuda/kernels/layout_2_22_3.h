// Records of NCCL 2.22.3. README §3.
#pragma once

#include "tests/rig/emulated_cuda/kernels/layout_common.h"

namespace weft::nccl_kernels {

constexpr int kNcclVersion = 22203;
constexpr int kMaxChannels = 32;
constexpr int kFunctionTableTypes = 10;
constexpr bool kHasPat = false;
constexpr bool kHasGatheredBroadcasts = false;
constexpr bool kSignedDivisionHasOwnFunctions = true;
constexpr std::size_t kWorkBytes[4] = {48, 64, 256, 0};

struct Ring {
  int previous, next;
  int* user_ranks;  // ranks in ring order, this one first
  int index;
};

struct alignas(16) Channel {
  ChannelPeer** peers;
  Ring ring;
  Tree tree;
  char other_topologies[300];
  std::uint32_t* fifo_done;
};

struct Communicator {
  int rank, ranks, node, nodes;
  int buffer_bytes[kProtocols];
  int send_receive_chunk_bytes;
  std::uint32_t* work_consumed;  // a word a channel; the host waits for it when the work FIFO is full
  int* dense_to_rank;
  volatile std::uint32_t* abort_flag;
  Channel* channels;
};

struct WorkCollective {
  std::uint8_t first_channel, last_channel, warps;
  std::uint8_t flags;
  std::uint32_t root;
  char* receive_buffer;
  char* send_buffer;
  std::size_t count_first, count_middle, count_last;  // elements of the first, each middle, the last channel
  std::uint64_t chunk_grains;                         // 21 bits each: first, middle, last
  std::uint64_t reduction_argument;

  bool argument_is_pointer() const { return (flags & 1) != 0; }
  bool peer_registered() const { return (flags >> 1 & 3) != 0; }
  bool nic_registered() const { return false; }
  bool one_rank_per_node() const { return false; }
};

static_assert(sizeof(Ring) == 24 && offsetof(Ring, index) == 16);
static_assert(sizeof(Channel) == 368 && offsetof(Channel, tree) == 32 && offsetof(Channel, fifo_done) == 352);
static_assert(sizeof(Communicator) == 64 && offsetof(Communicator, work_consumed) == 32 &&
              offsetof(Communicator, abort_flag) == 48 && offsetof(Communicator, channels) == 56);
static_assert(sizeof(WorkCollective) == 64 && offsetof(WorkCollective, count_first) == 24 &&
              offsetof(WorkCollective, reduction_argument) == 56);

}  // namespace weft::nccl_kernels
