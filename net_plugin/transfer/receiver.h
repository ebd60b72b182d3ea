// The receiving end of a connection: offers buffers, counts pieces, flushes GPU memory.
//
// Threads: one NCCL progress thread. Nothing here allocates, locks or logs, except when the connection fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net_plugin/transfer/arrivals.h"
#include "net_plugin/transfer/link.h"
#include "net_plugin/transfer/piece_plan.h"
#include "net_plugin/transfer/registration.h"
#include "net_plugin/transfer/request.h"
#include "net_plugin/transfer/wire.h"

namespace weft::transfer {

// Work requests for records that a receiving queue pair takes at once.
inline constexpr std::uint32_t kRecordDepth = 128;
// Receives are queued again in lists of so many, to ring the doorbell less often: up to one fewer may be missing.
inline constexpr int kQueueBatch = 16;
// With fewer receives in a queue a group of receives could never be offered.
inline constexpr int kFewestReceives = kMaxGroup + kQueueBatch - 1;

// A queue pair connected to itself: an RDMA READ through it returns after all earlier writes of this NIC to the memory
// that it reads have become visible. One for each device: each may have written.
struct FlushPath {
  verbs::QueuePair qp;                     // reports to the first batch's queue of its device
  std::unique_ptr<std::uint64_t> landing;  // where the byte goes
  verbs::MemoryRegion landing_region;
};

// Where the sender keeps its ring, and the keys of its devices for it.
struct RemoteRing {
  std::uint64_t address = 0;
  std::array<std::uint32_t, kMaxDevices> keys{};
};

struct ReceiveLimits {
  PieceLimits pieces;
  // Work requests queued for pieces, in each shared receive queue or, without them, each queue pair; kFewestReceives at
  // least.
  int receives = 0;
  // Bytes that may be on offer through one device, all connections of the process together; 0: no limit. A connection
  // may always offer one request, or connections could wait for each other.
  std::size_t incast_bytes = 0;
};

// Nothing is set by itself: arrays of them are filled in for every message.
struct Receive {
  void* data;
  std::size_t size;
  int tag;
  const Registration* memory;  // may be null where size is 0
};

class Receiver {
 public:
  // The queue pairs of `link` have their receives, see queue_receives(). `flush`: one for each device, or none.
  static Result<std::unique_ptr<Receiver>> create(std::unique_ptr<Link> link, const RemoteRing& ring,
                                                  const ReceiveLimits& limits, std::vector<FlushPath> flush);
  ~Receiver();

  // Offers `count` buffers (1 … kMaxGroup) as one request. not_yet: too much is outstanding, ask again.
  Progress receive(const Receive* receives, int count, Request** request);
  // Makes what the NIC has written to device memory visible. *request null: nothing to do.
  Progress flush(const Receive* receives, int count, Request** request);
  // sizes: one entry for each receive of the group, null allowed; written where the request is done.
  Progress test(Request& request, int* sizes);

  Link& link() { return *link_; }
  // Whoever owns the connection: test() is given a request only.
  void* owner = nullptr;

 private:
  struct Group : Request {
    int missing = 0;        // messages of the group that are not complete
    int granted = 0;        // pieces of all of them
    std::size_t bytes = 0;  // on offer
  };
  struct PathState {
    ibv_qp* qp;
    std::uint32_t inline_bytes;
    std::uint8_t device, peer_device;
    std::uint32_t posted = 0;      // records posted and not known to have completed
    std::uint32_t unsignaled = 0;  // of them, since the last one that will report
  };
  // Receives used up and not queued again: by device with shared receive queues, else by path.
  struct Owed {
    int receives = 0;
  };
  struct FlushState {
    std::uint32_t done = 0;
  };

  Receiver(std::unique_ptr<Link> link, const RemoteRing& ring, const ReceiveLimits& limits,
           std::vector<FlushPath> flush);

  // `count` is an int or, for what is nearly always asked, a constant.
  template <class Count>
  Progress offer(const Receive* receives, Count count, Request** request);
  template <class Count>
  int grant(const Receive* receives, Count count, std::uint16_t* pieces);
  template <class Count>
  bool post_records(std::uint32_t first, Count count);
  inline bool post_record_run(std::size_t path, std::uint32_t slot, int count);
  bool poll();
  bool complete_receive(const ibv_wc& completion, int path);
  void take_paths_of_link();
  bool queue_owed();
  std::size_t next_record_path();
  bool shared_queues() const { return link_->devices.front().srq != nullptr; }
  bool within_incast_limit(std::size_t bytes) const;
  void count_granted(std::size_t bytes);
  void give_back(std::size_t bytes);
  bool flushed(std::uint32_t number) const;
  void take_new_paths();

  std::unique_ptr<Link> link_;
  RemoteRing remote_;
  ReceiveLimits limits_;
  PlanMemory plans_;
  // What a record's write request always says; the rest is set for each.
  ibv_send_wr record_work_{};
  ibv_sge record_segment_{};
  std::size_t record_turn_ = 0;  // path of the latest record
  int granted_ = 0;              // pieces that the sender may send
  std::size_t granted_bytes_ = 0;
  std::vector<FlushPath> flush_;
  std::vector<FlushState> flush_state_;
  Arrivals arrivals_;
  std::vector<PathState> paths_;
  std::vector<Owed> owed_;
  std::unique_ptr<ClearToSend[]> records_;  // what post_records writes from
  std::vector<verbs::MemoryRegion> records_regions_;
  std::unique_ptr<std::array<Group, kSlots>> groups_;  // by the first message's slot
  std::array<std::uint8_t, kSlots> group_of_{};        // slot of a message -> slot of its group
  std::array<Request, 32> flushes_{};                  // NCCL has at most NCCL_NET_MAX_REQUESTS outstanding
  std::uint32_t flush_next_ = 0;
  std::uint32_t next_ = 0;  // number of the next message
  int open_ = 0;
};

// Queues `count` receives in `srq` or, where that is null, in `qp`; `index`: the device, or the path. 0 or an errno.
int queue_receives(ibv_srq* srq, ibv_qp* qp, int index, int count);

}  // namespace weft::transfer
