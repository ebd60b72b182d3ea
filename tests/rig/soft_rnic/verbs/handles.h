// What the application holds: the structures of verbs.h, each followed by what is ours.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>

#include "tests/rig/soft_rnic/engine/nic.h"

namespace weft::soft_rnic {

struct ContextHandle : ibv_context {
  std::shared_ptr<Nic> nic;
  AsyncEvents events;
  std::atomic<std::uint32_t> shared_receive_queues{0};
};

struct ChannelHandle : ibv_comp_channel {
  CompletionChannel events;
};

struct CompletionQueueHandle : ibv_cq {
  CompletionQueueHandle(std::size_t capacity, CompletionChannel* events) : queue(this, capacity, events) {}
  CompletionQueue queue;
};

struct SharedReceiveQueueHandle : ibv_srq {
  explicit SharedReceiveQueueHandle(std::size_t capacity) : receives(capacity) {}
  SharedReceives receives;
  std::uint32_t max_pieces = 0;
};

struct QueuePairHandle : ibv_qp {
  QueuePair* engine = nullptr;
  ibv_qp_init_attr initial{};
};

inline ContextHandle& handle_of(ibv_context* context) {
  return *static_cast<ContextHandle*>(context);
}
inline ChannelHandle& handle_of(ibv_comp_channel* channel) {
  return *static_cast<ChannelHandle*>(channel);
}
inline CompletionQueueHandle& handle_of(ibv_cq* queue) {
  return *static_cast<CompletionQueueHandle*>(queue);
}
inline SharedReceiveQueueHandle& handle_of(ibv_srq* queue) {
  return *static_cast<SharedReceiveQueueHandle*>(queue);
}
inline QueuePairHandle& handle_of(ibv_qp* queue_pair) {
  return *static_cast<QueuePairHandle*>(queue_pair);
}

// The fast-path functions of a context (struct ibv_context_ops).
ibv_context_ops data_path_operations();

// Limits that every emulated device has.
inline constexpr int kMaxWorkRequests = 16384;
inline constexpr int kMaxCompletions = 1 << 20;
inline constexpr int kMaxReads = 16;  // max_qp_rd_atom

}  // namespace weft::soft_rnic
