// The control thread: one a process, alive while somebody holds a Control. It serves tasks that wait for a descriptor
// or a time: listeners, handshakes, the sockets of live connections, asynchronous events. No task may block.
//
// A forked child has no such thread and must not use the object; Runtime looks at the process number before it does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/result/result.h"

namespace weft::setup {

using TimePoint = std::chrono::steady_clock::time_point;

class Task {
 public:
  struct Wanted {
    int descriptor = -1;  // -1: none
    short events = 0;
    std::optional<TimePoint> wake;
  };
  virtual ~Task() = default;
  // All are called on the control thread. wanted() is asked when the task is added, after each step, and after a call()
  // that concerns it; the descriptor stays open until let_go().
  virtual Wanted wanted() = 0;
  // `events`: as in poll(2), 0 where the time has come. false: the task is over and is let go.
  virtual bool step(short events, TimePoint now) = 0;
  // The descriptor is watched no more.
  virtual void let_go() {}
};

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }
  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }
  int release();
  void reset();

 private:
  int descriptor_ = -1;
};

class Control {
 public:
  static Result<std::shared_ptr<Control>> start();
  // Ends the thread; the tasks that are left are let go. Not on the control thread itself.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  void add(std::shared_ptr<Task> task);
  // Runs `work`, which concerns `task`, on the control thread, between two tasks, and returns when it has been run.
  void call(const std::shared_ptr<Task>& task, const std::function<void()>& work);
  // When this has returned, the task is not running and never will.
  void remove(const std::shared_ptr<Task>& task);

 private:
  // A process has thousands of tasks, one for each connection, and hardly any of them has something to do: what is
  // ready is found without a look at the others.
  struct Entry {
    std::shared_ptr<Task> task;
    Task::Wanted watched;  // as the kernel and timers_ know it
    short unwatched = 0;   // events that the task wants and the kernel can't watch for
  };
  using Number = std::uint64_t;
  struct Call {
    std::shared_ptr<Task> task;
    std::function<void()> work;
  };

  Control(FileDescriptor wake, FileDescriptor ready) : wake_(std::move(wake)), ready_(std::move(ready)) {}
  void run();
  bool wait();
  void step_ready(TimePoint now);
  void step_due(TimePoint now);
  void step(Number number, short events, TimePoint now);
  void watch(Number number, Entry& entry);
  void watch_descriptor(Number number, Entry& entry, Task::Wanted& wanted);
  void let_go(Task* task);
  void run_calls();
  void wake();

  FileDescriptor wake_;   // eventfd
  FileDescriptor ready_;  // epoll
  std::mutex mutex_;
  std::condition_variable called_;
  std::vector<std::shared_ptr<Task>> added_;
  std::vector<Call> calls_;
  std::uint64_t calls_made_ = 0;
  std::uint64_t calls_done_ = 0;
  bool stop_ = false;
  // Control thread only.
  std::unordered_map<Number, Entry> entries_;
  std::unordered_map<Task*, Number> numbers_;
  std::set<std::pair<TimePoint, Number>> timers_;
  std::vector<Number> due_;
  Number next_number_ = 1;  // 0: wake_
  std::thread thread_;
};

}  // namespace weft::setup
