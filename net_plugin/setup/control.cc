#include "net_plugin/setup/control.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace weft::setup {

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
  std::shared_ptr<Control> control(new Control(std::move(wake)));
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

void Control::call(const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  calls_.push_back(work);
  const std::uint64_t mine = ++calls_made_;
  wake();
  called_.wait(lock, [&] { return calls_done_ >= mine; });
}

void Control::remove(const std::shared_ptr<Task>& task) {
  call([&] { std::erase(tasks_, task); });
}

void Control::run_calls() {
  std::vector<std::function<void()>> calls;
  {
    std::lock_guard lock(mutex_);
    calls.swap(calls_);
    tasks_.insert(tasks_.end(), added_.begin(), added_.end());
    added_.clear();
  }
  for (const auto& work : calls)
    work();
  if (calls.empty()) return;
  {
    std::lock_guard lock(mutex_);
    calls_done_ += calls.size();
  }
  called_.notify_all();
}

void Control::run() {
  pthread_setname_np(pthread_self(), "weft-control");
  std::vector<pollfd> waits;
  std::vector<std::optional<TimePoint>> wakes;
  while (true) {
    run_calls();
    {
      std::lock_guard lock(mutex_);
      if (stop_) break;
    }
    waits.assign(1, {wake_.get(), POLLIN, 0});
    wakes.clear();
    std::optional<TimePoint> first;
    for (const auto& task : tasks_) {
      const Task::Wanted wanted = task->wanted();
      waits.push_back({wanted.descriptor, wanted.events, 0});
      wakes.push_back(wanted.wake);
      if (wanted.wake && (!first || *wanted.wake < *first)) first = wanted.wake;
    }
    timespec timeout{};
    if (first) {
      const std::chrono::nanoseconds left = std::clamp<std::chrono::nanoseconds>(
          *first - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0), std::chrono::minutes(1));
      timeout.tv_sec = left.count() / 1'000'000'000;
      timeout.tv_nsec = left.count() % 1'000'000'000;
    }
    if (ppoll(waits.data(), waits.size(), first ? &timeout : nullptr, nullptr) < 0) {
      // Interrupted, or short of memory for a moment: look again instead of leaving the tasks alone.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    std::uint64_t ignored = 0;
    (void)!read(wake_.get(), &ignored, sizeof ignored);
    const TimePoint now = std::chrono::steady_clock::now();
    std::vector<std::shared_ptr<Task>> finished;
    for (std::size_t i = 0; i < wakes.size(); i++) {
      const short events = waits[i + 1].revents;
      if (events == 0 && !(wakes[i] && *wakes[i] <= now)) continue;
      if (!tasks_[i]->step(events, now)) finished.push_back(tasks_[i]);
    }
    for (const auto& task : finished)
      std::erase(tasks_, task);
  }
  tasks_.clear();
}

}  // namespace weft::setup
