#include "tests/rig/emulated_cuda/kernels/concurrency.h"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace weft::nccl_kernels {
namespace {

// Counts jobs that have not ended.
class Countdown {
 public:
  explicit Countdown(std::size_t jobs) : left_(jobs) {}
  void one_ended() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) none_left_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    none_left_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_left_;
  std::size_t left_;
};

// Threads that have nothing to do. Never destroyed: they sleep until the process is gone.
class IdleThreads {
 public:
  void run(std::function<void()> job) {
    std::unique_lock lock(mutex_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() <= idle_) {
      job_came_.notify_one();
      return;
    }
    lock.unlock();
    std::thread([this] { serve(); }).detach();
  }

 private:
  void serve() {
    pthread_setname_np(pthread_self(), "kernel block");
    std::unique_lock lock(mutex_);
    while (true) {
      idle_++;
      job_came_.wait(lock, [this] { return !jobs_.empty(); });
      idle_--;
      std::function<void()> job = std::move(jobs_.back());
      jobs_.pop_back();
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable job_came_;
  std::vector<std::function<void()>> jobs_;
  std::size_t idle_ = 0;
};

IdleThreads& idle_threads() {
  static IdleThreads& threads = *new IdleThreads;
  return threads;
}

}  // namespace

void run_at_once(const std::vector<std::function<void()>>& jobs) {
  if (jobs.empty()) return;
  Countdown others(jobs.size() - 1);
  for (std::size_t i = 1; i < jobs.size(); i++) {
    idle_threads().run([&job = jobs[i], &others] {
      job();
      others.one_ended();
    });
  }
  jobs.front()();
  others.wait();
}

}  // namespace weft::nccl_kernels
