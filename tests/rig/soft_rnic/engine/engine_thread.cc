// The NIC's own thread: sleeps until packets or deadlines come, keeps out of the way while the application polls, and
// looks after the control and statistics files.
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "tests/rig/soft_rnic/engine/nic.h"

namespace weft::soft_rnic {
namespace {

// The application counts as polling this long after its last poll.
constexpr Nanoseconds kPollingFor = 500 * kMicrosecond;
// How long the thread sleeps at a time while the application polls: a thread that woke for every packet would only
// fight with the application for the lock (measured: README.md).
constexpr Nanoseconds kNap = 250 * kMicrosecond;
constexpr Nanoseconds kLongestSleep = 50 * kMillisecond;
constexpr Nanoseconds kShortestSleep = 20 * kMicrosecond;
constexpr Nanoseconds kControlPeriod = 50 * kMillisecond;
constexpr Nanoseconds kStatisticsPeriod = 500 * kMillisecond;

timespec duration(Nanoseconds time) {
  return {static_cast<time_t>(time / 1'000'000'000), static_cast<long>(time % 1'000'000'000)};
}

void clear(int eventfd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = read(eventfd, &count, sizeof count);
}

}  // namespace

void Nic::run() {
  pthread_setname_np(pthread_self(), "soft_rnic");
  while (!stop_) {
    Nanoseconds now = monotonic_now();
    // Announced before service_due_ is read: whoever lowers it from here on sees that a wake-up is needed.
    thread_wakes_at_ = kNever;
    const Nanoseconds due = service_due_;
    Nanoseconds sleep = std::clamp(due == kNever ? kLongestSleep : due - now, kShortestSleep, kLongestSleep);
    const bool application_polls = now - last_poll_ < kPollingFor;
    if (application_polls) sleep = std::min(sleep, kNap);
    thread_wakes_at_ = now + sleep;
    const timespec wait = duration(sleep);
    if (application_polls) {
      nanosleep(&wait, nullptr);
    } else {
      pollfd sources[2] = {{loan_.socket.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      ppoll(sources, 2, &wait, nullptr);
      if (sources[1].revents != 0) clear(wake_.get());
    }
    thread_wakes_at_ = 0;
    now = monotonic_now();
    housekeeping(now);
    if (now - last_poll_ < kNap && now < service_due_) continue;
    const std::lock_guard lock(mutex_);
    progress();
  }
}

void Nic::housekeeping(Nanoseconds now) {
  if (now >= next_control_read_) {
    next_control_read_ = now + kControlPeriod;
    if (control_file_.refresh()) apply_faults(control_file_.faults_of(device_.name));
  }
  if (now >= next_statistics_) {
    next_statistics_ = now + kStatisticsPeriod;
    publish_statistics_();
  }
}

}  // namespace weft::soft_rnic
