#include "tests/rig/soft_rnic/protocol/receive_queue.h"

#include <utility>

namespace weft::soft_rnic {

ReceiveRequest ReceiveQueue::take() {
  const ReceiveRequest request = requests_.front();
  requests_.pop();
  if (limit_ > 0 && requests_.size() < limit_) {
    limit_ = 0;
    limit_event_ = true;
  }
  return request;
}

void ReceiveQueue::revoke(const MemoryRange& range) {
  for (std::size_t index = 0; index < requests_.size(); ++index) {
    if (requests_[index].memory.touches(range)) requests_[index].memory.count = 0;
  }
}

bool ReceiveQueue::take_limit_event() {
  return std::exchange(limit_event_, false);
}

}  // namespace weft::soft_rnic
