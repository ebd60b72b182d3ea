// A queue with a file descriptor that is readable while the queue holds something: completion channels and asynchronous
// events. Waiting follows the descriptor: blocking, or failing with EAGAIN once the application has made it
// non-blocking.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "tests/rig/soft_rnic/transport/file_descriptor.h"

namespace weft::soft_rnic {

// Thread-safe.
template <class Event>
class EventQueue {
 public:
  EventQueue() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {}

  int descriptor() const { return descriptor_.get(); }

  void add(const Event& event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    }
    const std::uint64_t one = 1;
    // Cannot fail short of 2^64 events.
    [[maybe_unused]] const ssize_t written = write(descriptor_.get(), &one, sizeof one);
  }

  // The oldest event; nothing with errno set where waiting failed.
  std::optional<Event> wait() {
    for (;;) {
      std::uint64_t one = 0;
      if (read(descriptor_.get(), &one, sizeof one) != sizeof one) {
        if (errno == EINTR) continue;
        return std::nullopt;
      }
      const std::lock_guard lock(mutex_);
      if (events_.empty()) continue;  // what the descriptor announced was removed meanwhile
      const Event event = events_.front();
      events_.pop_front();
      return event;
    }
  }

  // Drops the events that `matches` picks: of an object that is being destroyed.
  template <class Predicate>
  void remove_if(Predicate matches) {
    const std::lock_guard lock(mutex_);
    events_.erase(std::remove_if(events_.begin(), events_.end(), matches), events_.end());
  }

 private:
  FileDescriptor descriptor_;
  std::mutex mutex_;
  std::deque<Event> events_;
};

}  // namespace weft::soft_rnic
