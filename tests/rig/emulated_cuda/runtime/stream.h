// A stream: a queue of work that one thread carries out in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace weft::emulated_cuda {

// A point of a stream that has been reached or not. Thread-safe; once reached it stays so.
class Milestone {
 public:
  void reach();
  void wait();
  bool reached() const;
  // When it was reached; only where it was.
  std::chrono::steady_clock::time_point time() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  std::chrono::steady_clock::time_point time_;
};

class Stream {
 public:
  // `blocking`: ordered with the device's default stream. The thread starts with the first work.
  Stream(int device, bool blocking, std::uint64_t id) : device_(device), blocking_(blocking), id_(id) {}
  // Carries out what is queued, then ends the thread.
  ~Stream();

  void enqueue(std::function<void()> work);
  void synchronize();
  bool idle() const;
  // A milestone behind everything queued so far.
  std::shared_ptr<Milestone> milestone();
  // Work queued later begins after the milestone is reached.
  void wait_for(std::shared_ptr<Milestone> milestone);

  int device() const { return device_; }
  bool blocking() const { return blocking_; }
  std::uint64_t id() const { return id_; }

 private:
  void work_off();

  const int device_;
  const bool blocking_;
  const std::uint64_t id_;
  mutable std::mutex mutex_;
  std::condition_variable work_came_, became_idle_;
  std::deque<std::function<void()>> queue_;
  bool working_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace weft::emulated_cuda
