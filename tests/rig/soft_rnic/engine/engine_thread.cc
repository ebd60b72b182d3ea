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

// While the application polls, the thread only looks now and then whether it still does: a thread that woke for every
// packet would fight with the application for lock and processor. The first look comes soon, since many applications
// poll for a moment only and then wait for memory to change; each further one later.
constexpr Nanoseconds kShortestNap = 40 * kMicrosecond;
constexpr Nanoseconds kLongestNap = 640 * kMicrosecond;
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

void sleep_until(Nanoseconds time) {
  const timespec end = duration(time);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr);
}

}  // namespace

void Nic::run() {
  pthread_setname_np(pthread_self(), "soft_rnic");
  Nanoseconds nap = 0;  // 0: the application does not poll, packets wake the thread
  while (!stop_) {
    const Nanoseconds begin = monotonic_now();
    if (nap > 0) {
      sleep_until(std::min(begin + nap, service_due_.load()));
    } else {
      wait_for_packets(begin);
    }
    const Nanoseconds now = monotonic_now();
    housekeeping(now);
    const bool application_polled = last_poll_ >= begin;
    if (application_polled) {
      nap = std::clamp(2 * nap, kShortestNap, kLongestNap);
      if (now < service_due_) continue;
    } else {
      nap = 0;
    }
    const std::lock_guard lock(mutex_);
    progress();
  }
}

void Nic::wait_for_packets(Nanoseconds now) {
  // Announced before service_due_ is read: whoever lowers it from here on sees that a wake-up is needed.
  thread_wakes_at_ = kNever;
  const Nanoseconds due = service_due_;
  const Nanoseconds sleep = std::clamp(due == kNever ? kLongestSleep : due - now, kShortestSleep, kLongestSleep);
  thread_wakes_at_ = now + sleep;
  const timespec wait = duration(sleep);
  pollfd sources[2] = {{loan_.socket.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  ppoll(sources, 2, &wait, nullptr);
  if (sources[1].revents != 0) clear(wake_.get());
  thread_wakes_at_ = 0;
}

void Nic::housekeeping(Nanoseconds now) {
  if (now >= next_control_read_) {
    next_control_read_ = now + kControlPeriod;
    if (control_file_.refresh()) apply_faults(control_file_.faults_of(device_.name));
  }
  if (now >= next_statistics_) {
    next_statistics_ = now + kStatisticsPeriod;
    if (auto sent = statistics()) publish_statistics_(device_.name, std::move(*sent));
  }
}

}  // namespace weft::soft_rnic
