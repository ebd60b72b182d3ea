#include "net_plugin/setup/control.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace weft::setup {
namespace {

// Descriptors that are ready, taken at a time.
constexpr int kReadyBatch = 64;
// Where the kernel can't watch a descriptor (fs.epoll.max_user_watches, memory) its task is asked so often instead.
constexpr std::chrono::milliseconds kUnwatchedInterval{10};

static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR && EPOLLHUP == POLLHUP,
              "tasks know the events of poll(2)");

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    descriptor_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() {
  return std::exchange(descriptor_, -1);
}

void FileDescriptor::reset() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

Result<std::shared_ptr<Control>> Control::start() {
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return system_error("eventfd failed", errno, "control thread");
  FileDescriptor ready(epoll_create1(EPOLL_CLOEXEC));
  if (!ready.valid()) return system_error("epoll_create1 failed", errno, "control thread");
  epoll_event woken{EPOLLIN, {}};
  if (epoll_ctl(ready.get(), EPOLL_CTL_ADD, wake.get(), &woken) != 0)
    return system_error("epoll_ctl failed", errno, "control thread");
  std::shared_ptr<Control> control(new Control(std::move(wake), std::move(ready)));
  // The host process's signals are not ours to take.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Error failure;
  try {
    control->thread_ = std::thread([object = control.get()] { object->run(); });
  } catch (const std::system_error& error) {
    failure = system_error("cannot start the control thread", error.code().value());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!control->thread_.joinable()) return failure;
  return control;
}

Control::~Control() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  thread_.join();
}

void Control::wake() {
  const std::uint64_t one = 1;
  // Can only fail when the counter is full, and then the thread is awake.
  (void)!write(wake_.get(), &one, sizeof one);
}

void Control::add(std::shared_ptr<Task> task) {
  {
    std::lock_guard lock(mutex_);
    added_.push_back(std::move(task));
  }
  wake();
}

void Control::call(const std::shared_ptr<Task>& task, const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  calls_.push_back({task, work});
  const std::uint64_t mine = ++calls_made_;
  wake();
  called_.wait(lock, [&] { return calls_done_ >= mine; });
}

void Control::remove(const std::shared_ptr<Task>& task) {
  call(task, [&] { let_go(task.get()); });
}

void Control::let_go(Task* task) {
  const auto number = numbers_.find(task);
  if (number == numbers_.end()) return;
  const auto entry = entries_.find(number->second);
  const Task::Wanted& watched = entry->second.watched;
  if (watched.descriptor >= 0) epoll_ctl(ready_.get(), EPOLL_CTL_DEL, watched.descriptor, nullptr);
  if (watched.wake) timers_.erase({*watched.wake, number->second});
  // The last one to hold the task may be the entry.
  const std::shared_ptr<Task> last = std::move(entry->second.task);
  entries_.erase(entry);
  numbers_.erase(number);
  last->let_go();
}

// Tells the kernel and the timers what the task wants now, as far as it differs from what they know.
void Control::watch(Number number, Entry& entry) {
  Task::Wanted wanted = entry.task->wanted();
  watch_descriptor(number, entry, wanted);
  if (wanted.wake == entry.watched.wake) return;
  if (entry.watched.wake) timers_.erase({*entry.watched.wake, number});
  if (wanted.wake) timers_.insert({*wanted.wake, number});
  entry.watched.wake = wanted.wake;
}

void Control::watch_descriptor(Number number, Entry& entry, Task::Wanted& wanted) {
  Task::Wanted& watched = entry.watched;
  entry.unwatched = 0;
  if (wanted.descriptor == watched.descriptor && wanted.events == watched.events) return;
  if (watched.descriptor >= 0 && wanted.descriptor != watched.descriptor) {
    epoll_ctl(ready_.get(), EPOLL_CTL_DEL, watched.descriptor, nullptr);
    watched.descriptor = -1;
  }
  if (wanted.descriptor < 0) return;
  epoll_event event{};
  event.events = std::uint32_t(wanted.events);
  event.data.u64 = number;
  const int change = watched.descriptor < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (epoll_ctl(ready_.get(), change, wanted.descriptor, &event) == 0) {
    watched.descriptor = wanted.descriptor;
    watched.events = wanted.events;
    return;
  }
  entry.unwatched = wanted.events;
  const TimePoint soon = std::chrono::steady_clock::now() + kUnwatchedInterval;
  wanted.wake = wanted.wake ? std::min(*wanted.wake, soon) : soon;
}

void Control::run_calls() {
  std::vector<Call> calls;
  std::vector<std::shared_ptr<Task>> added;
  {
    std::lock_guard lock(mutex_);
    calls.swap(calls_);
    added.swap(added_);
  }
  for (auto& task : added) {
    const Number number = next_number_++;
    numbers_[task.get()] = number;
    watch(number, entries_[number] = {std::move(task), {}});
  }
  for (const Call& call : calls) {
    call.work();
    const auto number = numbers_.find(call.task.get());
    if (number != numbers_.end()) watch(number->second, entries_[number->second]);
  }
  if (calls.empty()) return;
  const std::size_t done = calls.size();
  // Who called may be the last to hold the task now, and expects its descriptor to close with it.
  calls.clear();
  {
    std::lock_guard lock(mutex_);
    calls_done_ += done;
  }
  called_.notify_all();
}

void Control::step(Number number, short events, TimePoint now) {
  const auto found = entries_.find(number);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  // A descriptor that is not watched may be ready or not.
  if (entry.task->step(events != 0 ? events : entry.unwatched, now))
    watch(number, entry);
  else
    let_go(entry.task.get());
}

void Control::step_ready(TimePoint now) {
  epoll_event ready[kReadyBatch];
  const int count = epoll_wait(ready_.get(), ready, kReadyBatch, 0);
  for (int i = 0; i < count; i++) {
    if (ready[i].data.u64 != 0) {
      step(ready[i].data.u64, short(ready[i].events), now);
      continue;
    }
    std::uint64_t ignored = 0;
    (void)!read(wake_.get(), &ignored, sizeof ignored);
  }
}

void Control::step_due(TimePoint now) {
  // Each once: one that wants to be called at a time that has passed must not keep the others waiting.
  due_.clear();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    due_.push_back(timers_.begin()->second);
    entries_[due_.back()].watched.wake.reset();
    timers_.erase(timers_.begin());
  }
  for (const Number number : due_)
    step(number, 0, now);
}

// Until a descriptor is ready, the next timer is due or somebody calls. To the nanosecond, which epoll_wait(2) is not.
bool Control::wait() {
  timespec timeout{};
  if (!timers_.empty()) {
    const std::chrono::nanoseconds left =
        std::clamp<std::chrono::nanoseconds>(timers_.begin()->first - std::chrono::steady_clock::now(),
                                             std::chrono::nanoseconds(0), std::chrono::minutes(1));
    timeout.tv_sec = left.count() / 1'000'000'000;
    timeout.tv_nsec = left.count() % 1'000'000'000;
  }
  pollfd any{ready_.get(), POLLIN, 0};
  return ppoll(&any, 1, timers_.empty() ? nullptr : &timeout, nullptr) >= 0;
}

void Control::run() {
  pthread_setname_np(pthread_self(), "weft-control");
  while (true) {
    run_calls();
    {
      std::lock_guard lock(mutex_);
      if (stop_) break;
    }
    if (!wait()) {
      // Interrupted, or short of memory for a moment: look again instead of leaving the tasks alone.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    const TimePoint now = std::chrono::steady_clock::now();
    step_ready(now);
    step_due(now);
  }
  while (!numbers_.empty())
    let_go(numbers_.begin()->first);
}

}  // namespace weft::setup
