// The sending end of a connection: waits for clear-to-send records, cuts messages into pieces, lets the paths pull
// them.
//
// Threads: one NCCL progress thread. Nothing here allocates, locks or logs, except when the connection fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net_plugin/transfer/link.h"
#include "net_plugin/transfer/path_scheduler.h"
#include "net_plugin/transfer/piece_plan.h"
#include "net_plugin/transfer/registration.h"
#include "net_plugin/transfer/request.h"
#include "net_plugin/transfer/wire.h"

namespace weft::transfer {

// Work requests that a sending queue pair takes at once; the bring-up asks for so many.
inline constexpr std::uint32_t kSendDepth = 64;

// The ring into which the receiver writes its records: registered memory of the sender.
class ClearToSendRing {
 public:
  // Registered with each of `devices`: the receiver may write through any of them.
  static Result<ClearToSendRing> create(const std::vector<LinkDevice>& devices);
  // The record at `number`, or null while it has not come. The result is read-only memory that the NIC has finished
  // writing.
  const ClearToSend* find(std::uint32_t number) const;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(records_.get()); }
  std::uint32_t remote_key(std::size_t device) const { return regions_[device]->rkey; }

 private:
  std::unique_ptr<ClearToSend[]> records_;
  std::vector<verbs::MemoryRegion> regions_;
};

class Sender {
 public:
  Sender(std::unique_ptr<Link> link, ClearToSendRing ring, const PieceLimits& limits);

  // Starts a message of `size` bytes. done: *request is set; not_yet: the receiver has not offered a buffer, ask again.
  Progress send(const void* data, std::size_t size, int tag, const Registration& memory, Request** request);
  // *size: the bytes sent, where the request is done; the request is then free again.
  Progress test(Request& request, int* size);

  Link& link() { return *link_; }
  // Whoever owns the connection: test() is given a request only.
  void* owner = nullptr;

 private:
  struct Message : Request {
    const std::byte* data = nullptr;
    std::size_t size = 0;
    const Registration* memory = nullptr;  // NCCL keeps it until the request is done
    const ClearToSend* offer = nullptr;  // of the ring: nothing else comes to its place before the message is received
    PiecePlan plan;
    std::size_t offset = 0;          // of the next piece
    std::uint32_t immediate = 0;     // of the first piece, in host order
    std::uint16_t posted = 0;        // pieces handed to the paths
    std::uint16_t acknowledged = 0;  // pieces completed
  };
  // A piece under way. Completions of a queue pair come in the order of its posts, so a ring per path is enough.
  struct Piece {
    Message* message = nullptr;
    std::uint32_t bytes = 0;
    std::size_t under_way = 0;
    Nanoseconds posted_at = 0;
  };
  struct Work {
    ibv_send_wr request;
    ibv_sge segment;
  };
  struct alignas(64) PathState {
    PathState(int index, const DataPath& where);
    // What every piece needs of its DataPath.
    ibv_qp* qp;
    std::uint32_t inline_bytes;
    std::uint8_t device, peer_device;
    std::uint32_t first = 0;  // running numbers of the oldest and the next piece
    std::uint32_t next = 0;
    // Work requests that wait for the doorbell: a list in Sender::work_.
    std::uint32_t chained = 0;
    ibv_send_wr* chain_last = nullptr;
    std::unique_ptr<std::array<Piece, kSendDepth>> pieces;
    // For a piece that goes at once: most of it never changes.
    Work work{};
    bool full() const { return next - first == kSendDepth; }
  };
  // Work requests collected before doorbells are rung: one for each path that got any.
  static constexpr int kMostWork = 64;

  const ClearToSend* match(int tag, std::uint32_t* number) const;
  void count_matched(std::uint32_t number, std::uint32_t members);
  void take_paths_of_link();
  bool poll();
  bool pump();
  // Posts a piece on each idle path that is as fast as the average, as far as there are pieces and such paths.
  template <class Clock>
  bool post_on_good_paths(Message& message, Clock& now);
  // A piece of the message for this path: alone, or on the path's list until ring_doorbells().
  inline bool post(Message& message, int path, std::size_t bytes, Nanoseconds now);
  void prepare(Message& message, int path, std::size_t bytes, Nanoseconds now);
  inline void fill(Work& work, Message& message, PathState& path, std::size_t bytes);
  inline void remember(Message& message, PathState& path, std::size_t bytes, std::size_t under_way, Nanoseconds now);
  bool ring_doorbells();
  void take_new_paths();

  std::unique_ptr<Link> link_;
  ClearToSendRing ring_;
  PlanMemory plans_;
  PathScheduler scheduler_;
  std::vector<PathState> paths_;
  std::array<Work, kMostWork> work_{};
  Work* next_work_ = work_.data();
  std::unique_ptr<std::array<Message, kSlots>> messages_;
  // Slots whose messages have pieces left to post, in the order of their sends.
  std::array<std::uint8_t, kSlots> queue_{};
  std::uint32_t queue_first_ = 0;
  std::uint32_t queue_next_ = 0;
  // Number of the first message of the group that is being matched, and which of its members have been sent.
  std::uint32_t group_ = 0;
  std::uint32_t matched_ = 0;
  int open_ = 0;
  std::size_t waiting_bytes_ = 0;  // of messages begun, not handed to a path yet
};

}  // namespace weft::transfer
