// A reliable-connection queue pair of the engine: the two halves of the protocol, the path its packets take, and the
// state that modify_qp moves. Callers hold the NIC's lock.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "tests/rig/soft_rnic/device/statistics.h"
#include "tests/rig/soft_rnic/engine/completion_queue.h"
#include "tests/rig/soft_rnic/engine/memory_regions.h"
#include "tests/rig/soft_rnic/protocol/requester.h"
#include "tests/rig/soft_rnic/protocol/responder.h"
#include "tests/rig/soft_rnic/transport/file_descriptor.h"
#include "tests/rig/soft_rnic/transport/transmit_batch.h"

namespace weft::soft_rnic {

using AsyncEvents = EventQueue<ibv_async_event>;

// A shared receive queue and what its limit event is addressed to.
struct SharedReceives {
  explicit SharedReceives(std::size_t capacity) : queue(capacity) {}
  ReceiveQueue queue;
  ibv_srq* handle = nullptr;
  AsyncEvents* events = nullptr;
};

// What create_qp fixes. The pointers outlive the queue pair, as verbs demand.
struct QueuePairParts {
  std::uint32_t number = 0;
  ibv_qp* handle = nullptr;
  const void* protection_domain = nullptr;
  CompletionQueue* send_completions = nullptr;
  CompletionQueue* receive_completions = nullptr;
  SharedReceives* shared_receives = nullptr;  // null: a receive queue of its own
  AsyncEvents* events = nullptr;
  ibv_qp_cap capabilities{};
  bool signal_all = false;
};

class QueuePair final : public RemoteMemory {
 public:
  QueuePair(const QueuePairParts& parts, MemoryRegions& regions);

  const QueuePairParts& parts() const { return parts_; }
  std::uint32_t number() const { return parts_.number; }
  ibv_qp_state state() const { return state_; }
  void set_state(ibv_qp_state state) { state_ = state; }
  // As modify_qp left them; state fields are filled in by the reader.
  ibv_qp_attr& attributes() { return attributes_; }

  Requester& requester() { return requester_; }
  Responder& responder() { return responder_; }
  ReceiveQueue& receives() { return parts_.shared_receives ? parts_.shared_receives->queue : own_receives_; }

  const Path& path() const { return path_; }
  // Switches to another path between two packets; `socket` is kept open as long as it is in use.
  void set_path(const Path& path, std::shared_ptr<FileDescriptor> socket, PortStatistics& statistics);
  PortStatistics* statistics() { return statistics_; }

  bool answers_requests() const;
  bool sends_requests() const { return state_ == IBV_QPS_RTS || state_ == IBV_QPS_SQD; }

  // Everything queued completes with a flush error; `event`, if any, tells the application why.
  void enter_error_state();
  void raise(ibv_event_type event);
  // Completes the receives of its own queue with flush errors.
  void flush_receives();

  Nanoseconds deadline() const;

  // The network did not take everything: to be tried again at this time.
  Nanoseconds retry_send_at = kNever;
  bool in_active_list = false;
  bool drain_event_due = false;  // RTS to SQD asked for IBV_EVENT_SQ_DRAINED

  // RemoteMemory
  std::uint8_t* find(std::uint32_t key, std::uint64_t address, std::uint64_t length, int access) override;
  void store(std::uint8_t* destination, std::span<const std::uint8_t> payload) override;
  void before_read() override;

 private:
  QueuePairParts parts_;
  MemoryRegions* regions_;
  ibv_qp_state state_ = IBV_QPS_RESET;
  ibv_qp_attr attributes_{};
  ReceiveQueue own_receives_;
  Requester requester_;
  Responder responder_;
  Path path_;
  std::shared_ptr<FileDescriptor> socket_;
  PortStatistics* statistics_ = nullptr;
};

}  // namespace weft::soft_rnic
