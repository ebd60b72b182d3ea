// Records that NCCL's host code and kernels share, as far as both versions agree. README §3. Only members that are read
// here have names; offsets are checked where they could slip.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace weft::nccl_kernels {

constexpr int kSteps = 8;  // slots of a FIFO

enum Protocol : int { kLL, kLL128, kSimple };
constexpr int kProtocols = 3;

enum Algorithm : int { kTree, kRing, kCollNetDirect, kCollNetChain, kNvls, kNvlsTree, kPat };

// The reduction inside a kernel; NCCL's host code turns avg into one of the last two.
enum Operation : int { kSum, kProd, kMinMax, kPreMulSum, kSumPostDiv };
constexpr int kOperations = 5;

enum ElementType : int { kInt8, kUint8, kInt32, kUint32, kInt64, kUint64, kFloat16, kFloat32, kFloat64, kBfloat16 };
constexpr int kElementTypes = 10;  // that are emulated; 2.29.7 has two 8-bit floats behind them

// Between a kernel and a proxy thread or a peer, one entry a slot.
struct FifoEntry {
  int mode;  // kUseOffset: the slot is at `offset`, not at its place in the row
  int offset;
  ssize_t size;
  void* pointer;
};
constexpr int kUseOffset = 1;

struct ConnectionInfo {
  char* buffers[kProtocols];
  void* registrations[kProtocols];
  std::uint64_t* tail;  // steps filled
  std::uint64_t* head;  // steps freed
  int flags;
  int shared;
  int step_bytes;
  int padding;
  void** pointer_exchange;
  std::uint64_t* scalar_exchange;
  FifoEntry* fifo;  // null where no proxy takes part
  std::uint64_t step;
  std::uint64_t last_cleaning;
  char net_device[32];
};
constexpr int kNicDirect = 0x04;  // in flags: the NIC works on the user's buffer

struct ChannelPeer {
  ConnectionInfo send[2], receive[2];
};
constexpr int kCollectiveConnection = 0, kSendReceiveConnection = 1;

constexpr int kTreeChildren = 3;
struct Tree {
  int depth, up, down[kTreeChildren];  // ranks, -1 none
};

enum WorkKind : int { kWorkSendReceive, kWorkCollective, kWorkCollectiveRegistered, kWorkBroadcast };

// A set of works of one kind and function.
struct Batch {
  std::uint32_t flags;
  std::uint32_t offset_base;
  std::uint64_t offset_set;  // bit i: there is a work at offset_base + i * size

  int next_jump() const { return int(flags & 0x3fff); }  // index distance to the next batch, 0 the last
  bool next_extends() const { return (flags >> 14 & 1) != 0; }
  int work_kind() const { return int(flags >> 15 & 3); }
  int function_id() const { return int(flags >> 17); }
};

enum WorkStorage : std::uint8_t { kInArguments, kInFifo, kInPersistentBuffer };

struct Communicator;

struct KernelArguments {
  Communicator* communicator;
  std::uint64_t channel_mask;
  std::uint8_t work_storage;
  std::uint8_t padding[3];
  std::uint32_t work_mask;
  char* work_buffer;
};

struct WorkSendReceive {
  char* send_address;
  char* receive_address;
  std::size_t send_bytes, receive_bytes;
  int send_rank, receive_rank;
  std::uint8_t channels, channel_base, send_channels, receive_channels;
  std::uint8_t send_chunk, receive_chunk;  // 8-bit floats, see chunk_bytes()
  std::uint8_t flags;
  std::uint8_t padding;

  bool send_ll() const { return (flags & 1) != 0; }
  bool receive_ll() const { return (flags >> 1 & 1) != 0; }
  bool send_registered() const { return (flags >> 2 & 1) != 0; }
  bool receive_registered() const { return (flags >> 3 & 1) != 0; }
};

static_assert(sizeof(FifoEntry) == 24);
static_assert(sizeof(ConnectionInfo) == 152 && offsetof(ConnectionInfo, fifo) == 96);
static_assert(sizeof(ChannelPeer) == 608);
static_assert(sizeof(Tree) == 20);
static_assert(sizeof(Batch) == 16);
static_assert(sizeof(KernelArguments) == 32 && offsetof(KernelArguments, work_buffer) == 24);
static_assert(sizeof(WorkSendReceive) == 48);

}  // namespace weft::nccl_kernels
