// A completion queue: filled by the engine, emptied by the application's threads.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <mutex>

#include "tests/rig/soft_rnic/engine/event_queue.h"
#include "tests/rig/soft_rnic/protocol/ring.h"
#include "tests/rig/soft_rnic/protocol/work_request.h"

namespace weft::soft_rnic {

using CompletionChannel = EventQueue<ibv_cq*>;

// Thread-safe.
class CompletionQueue final : public CompletionSink {
 public:
  // `handle` is what a completion channel hands to the application; `channel` may be null.
  CompletionQueue(ibv_cq* handle, std::size_t capacity, CompletionChannel* channel);

  void add(const ibv_wc& completion, bool solicited) override;
  // Up to `count` completions, oldest first; negative after an overrun, as the queue is then lost.
  int poll(int count, ibv_wc* completions);
  bool empty() const;
  // One event on the channel for the next completion (or the next solicited or failed one); at once where one is
  // waiting already, so that none is missed between the last poll and arming.
  void request_notification(bool solicited_only);
  // A destroyed queue pair's completions are gone.
  void forget(std::uint32_t queue_pair);
  // True once after a completion found the queue full.
  bool take_overrun();

  ibv_cq* handle() const { return handle_; }
  CompletionChannel* channel() const { return channel_; }
  bool resize(std::size_t capacity);

 private:
  enum class Armed { no, solicited, any };

  ibv_cq* handle_;
  CompletionChannel* channel_;
  mutable std::mutex mutex_;
  Ring<ibv_wc> completions_;
  Armed armed_ = Armed::no;
  bool overrun_ = false;
  bool overrun_reported_ = false;
};

}  // namespace weft::soft_rnic
