// The control thread: one a process, alive while somebody holds a Control. It serves tasks that wait for a descriptor
// or a time: listeners, handshakes, the sockets of live connections, asynchronous events. No task may block.
//
// A forked child has no such thread and must not use the object; Runtime looks at the process number before it does.
#pragma once

#include <poll.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
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
  // Both are called on the control thread.
  virtual Wanted wanted() = 0;
  // `events`: what poll(2) reported, 0 where the time has come. false: the task is over and is let go.
  virtual bool step(short events, TimePoint now) = 0;
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
  // Runs `work` on the control thread, between two tasks, and returns when it has been run.
  void call(const std::function<void()>& work);
  // When call() has returned from this, the task is not running and never will.
  void remove(const std::shared_ptr<Task>& task);

 private:
  explicit Control(FileDescriptor wake) : wake_(std::move(wake)) {}
  void run();
  void run_calls();
  void wake();

  FileDescriptor wake_;  // eventfd
  std::mutex mutex_;
  std::condition_variable called_;
  std::vector<std::shared_ptr<Task>> added_;
  std::vector<std::function<void()>> calls_;
  std::uint64_t calls_made_ = 0;
  std::uint64_t calls_done_ = 0;
  bool stop_ = false;
  std::vector<std::shared_ptr<Task>> tasks_;  // control thread only
  std::thread thread_;
};

}  // namespace weft::setup
