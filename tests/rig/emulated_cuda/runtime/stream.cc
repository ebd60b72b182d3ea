#include "tests/rig/emulated_cuda/runtime/stream.h"

#include <pthread.h>

#include <utility>

#include "tests/rig/emulated_cuda/runtime/device.h"

namespace weft::emulated_cuda {

void Milestone::reach() {
  {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    time_ = std::chrono::steady_clock::now();
  }
  changed_.notify_all();
}

void Milestone::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return reached_; });
}

bool Milestone::reached() const {
  const std::lock_guard lock(mutex_);
  return reached_;
}

std::chrono::steady_clock::time_point Milestone::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_came_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Stream::enqueue(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { work_off(); });
    queue_.push_back(std::move(work));
  }
  work_came_.notify_one();
}

void Stream::work_off() {
  pthread_setname_np(pthread_self(), "stream");
  set_current_device(device_);
  std::unique_lock lock(mutex_);
  while (true) {
    if (queue_.empty()) became_idle_.notify_all();
    work_came_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    working_ = true;
    lock.unlock();
    work();
    work = nullptr;  // what it holds is released before the stream counts as idle
    lock.lock();
    working_ = false;
  }
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  became_idle_.wait(lock, [this] { return queue_.empty() && !working_; });
}

bool Stream::idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !working_;
}

std::shared_ptr<Milestone> Stream::milestone() {
  auto milestone = std::make_shared<Milestone>();
  enqueue([milestone] { milestone->reach(); });
  return milestone;
}

void Stream::wait_for(std::shared_ptr<Milestone> milestone) {
  enqueue([milestone = std::move(milestone)] { milestone->wait(); });
}

}  // namespace weft::emulated_cuda
