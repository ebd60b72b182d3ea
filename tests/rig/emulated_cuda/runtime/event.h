// An event: a name for the milestone that was recorded last.
#pragma once

#include <memory>
#include <mutex>

#include "tests/rig/emulated_cuda/runtime/cuda_api.h"
#include "tests/rig/emulated_cuda/runtime/stream.h"

namespace weft::emulated_cuda {

class Event {
 public:
  // Null before the first record. Whoever waits keeps the milestone it got, also when the event is recorded anew.
  std::shared_ptr<Milestone> milestone() const {
    const std::lock_guard lock(mutex_);
    return milestone_;
  }
  void set(std::shared_ptr<Milestone> milestone) {
    const std::lock_guard lock(mutex_);
    milestone_ = std::move(milestone);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Milestone> milestone_;
};

// Records the event behind what the stream has queued. An error code of CUDA.
int record(cudaEvent_t event, cudaStream_t stream);

}  // namespace weft::emulated_cuda
