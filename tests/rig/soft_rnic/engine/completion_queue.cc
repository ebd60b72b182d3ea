#include "tests/rig/soft_rnic/engine/completion_queue.h"

#include <algorithm>
#include <utility>

namespace weft::soft_rnic {

CompletionQueue::CompletionQueue(ibv_cq* handle, std::size_t capacity, CompletionChannel* channel)
    : handle_(handle), channel_(channel), completions_(capacity) {}

void CompletionQueue::add(const ibv_wc& completion, bool solicited) {
  bool raise = false;
  {
    const std::lock_guard lock(mutex_);
    if (completions_.full()) {
      overrun_ = true;
      return;
    }
    completions_.push(completion);
    const bool notable = solicited || completion.status != IBV_WC_SUCCESS;
    raise = channel_ != nullptr && (armed_ == Armed::any || (armed_ == Armed::solicited && notable));
    if (raise) armed_ = Armed::no;
  }
  if (raise) channel_->add(handle_);
}

int CompletionQueue::poll(int count, ibv_wc* completions) {
  const std::lock_guard lock(mutex_);
  if (overrun_ && completions_.empty()) return -1;
  int taken = 0;
  for (; taken < count && !completions_.empty(); ++taken) {
    completions[taken] = completions_.front();
    completions_.pop();
  }
  return taken;
}

bool CompletionQueue::empty() const {
  const std::lock_guard lock(mutex_);
  return completions_.empty();
}

void CompletionQueue::request_notification(bool solicited_only) {
  bool raise = false;
  {
    const std::lock_guard lock(mutex_);
    raise = channel_ != nullptr && !completions_.empty();
    if (raise) {
      armed_ = Armed::no;
    } else if (armed_ != Armed::any) {
      armed_ = solicited_only ? Armed::solicited : Armed::any;
    }
  }
  if (raise) channel_->add(handle_);
}

void CompletionQueue::forget(std::uint32_t queue_pair) {
  const std::lock_guard lock(mutex_);
  for (std::size_t left = completions_.size(); left > 0; --left) {
    const ibv_wc completion = completions_.front();
    completions_.pop();
    if (completion.qp_num != queue_pair) completions_.push(completion);
  }
}

bool CompletionQueue::take_overrun() {
  const std::lock_guard lock(mutex_);
  return overrun_ && !std::exchange(overrun_reported_, true);
}

bool CompletionQueue::resize(std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  if (capacity < completions_.size()) return false;
  Ring<ibv_wc> fresh(capacity);
  for (; !completions_.empty(); completions_.pop())
    fresh.push(completions_.front());
  completions_ = std::move(fresh);
  return true;
}

}  // namespace weft::soft_rnic
