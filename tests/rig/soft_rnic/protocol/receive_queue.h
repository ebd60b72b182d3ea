// Receive requests waiting for messages: of one queue pair, or shared by several (SRQ).
#pragma once

#include <cstdint>
#include <optional>

#include "tests/rig/soft_rnic/protocol/ring.h"
#include "tests/rig/soft_rnic/protocol/work_request.h"

namespace weft::soft_rnic {

class ReceiveQueue {
 public:
  explicit ReceiveQueue(std::size_t capacity) : requests_(capacity) {}

  std::size_t capacity() const { return requests_.capacity(); }
  bool empty() const { return requests_.empty(); }
  bool full() const { return requests_.full(); }
  void post(const ReceiveRequest& request) { requests_.push(request); }
  // Only while not empty.
  ReceiveRequest take();
  void clear() { requests_.clear(); }

  // This memory is no longer registered: receives lose the pieces that lie in it, so that a message for them is too
  // long.
  void revoke(const MemoryRange& range);

  // Shared receive queues: the number below which one limit event is due; 0 is off.
  void set_limit(std::uint32_t limit) { limit_ = limit; }
  std::uint32_t limit() const { return limit_; }
  // True once after the limit was undercut; the limit is then off.
  bool take_limit_event();

 private:
  Ring<ReceiveRequest> requests_;
  std::uint32_t limit_ = 0;
  bool limit_event_ = false;
};

}  // namespace weft::soft_rnic
