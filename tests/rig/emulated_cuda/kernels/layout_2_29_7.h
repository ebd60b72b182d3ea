// Records of NCCL 2.29.7. README §3.
#pragma once

#include "tests/rig/emulated_cuda/kernels/layout_common.h"

namespace weft::nccl_kernels {

constexpr int kNcclVersion = 22907;
constexpr int kMaxChannels = 64;
constexpr int kFunctionTableTypes = 12;  // element types in the function table, 8-bit floats included
constexpr bool kHasPat = true;
constexpr bool kHasGatheredBroadcasts = true;
constexpr bool kSignedDivisionHasOwnFunctions = false;
constexpr std::size_t kWorkBytes[4] = {48, 96, 288, 48};

struct Ring {
  int previous, next;
  int* user_ranks;  // ranks in ring order, this one first
  int* rank_to_index;
  int index;
};

struct alignas(16) Channel {
  ChannelPeer** peers;
  Ring ring;
  Tree tree;
  char other_topologies[292];
  std::uint32_t* fifo_done;
  std::uint64_t work_counter;
};

// Written for NCCL's profiler plugins: a ring of 64 entries a channel.
struct ProfilerSlots {
  struct {
    std::uint64_t counter, timestamp;
  } entries[64];
};

struct Communicator {
  int rank, ranks, node, nodes;
  int buffer_bytes[kProtocols];
  int send_receive_chunk_bytes;
  int all_nvlink;
  int* dense_to_rank;
  volatile std::uint32_t* abort_flag;
  Channel* channels;
  int* rank_to_local_rank;
  ProfilerSlots* work_started;
  ProfilerSlots* work_completed;
};

struct WorkCollective {
  std::uint8_t first_channel, last_channel, warps;
  std::uint8_t flags;
  std::uint32_t root;
  char* receive_buffer;
  char* send_buffer;
  std::uintptr_t window_offsets[4];
  std::size_t count_first, count_middle, count_last;  // elements of the first, each middle, the last channel
  std::uint64_t chunk_grains;                         // 21 bits each: first, middle, last
  std::uint64_t reduction_argument;

  bool argument_is_pointer() const { return (flags & 1) != 0; }
  bool peer_registered() const { return (flags >> 1 & 1) != 0; }
  bool nic_registered() const { return (flags >> 2 & 1) != 0; }
  bool one_rank_per_node() const { return (flags >> 6 & 1) != 0; }
  bool profiled() const { return (flags >> 7 & 1) != 0; }
};

// One of several broadcasts that a group call gathered.
struct WorkGatheredBroadcast {
  int ring_depth;  // distance from the root along the ring
  int chunk_bytes;
  char* send_buffer;
  char* receive_buffer;
  std::size_t bytes, bytes_done;
  char padding[8];
};

static_assert(sizeof(Ring) == 32 && offsetof(Ring, index) == 24);
static_assert(sizeof(Channel) == 368 && offsetof(Channel, tree) == 40 && offsetof(Channel, fifo_done) == 352);
static_assert(sizeof(Communicator) == 88 && offsetof(Communicator, abort_flag) == 48 &&
              offsetof(Communicator, channels) == 56 && offsetof(Communicator, work_started) == 72);
static_assert(sizeof(WorkCollective) == 96 && offsetof(WorkCollective, count_first) == 56 &&
              offsetof(WorkCollective, reduction_argument) == 88);
static_assert(sizeof(WorkGatheredBroadcast) == 48 && offsetof(WorkGatheredBroadcast, bytes_done) == 32);

}  // namespace weft::nccl_kernels
