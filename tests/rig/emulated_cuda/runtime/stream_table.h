// The streams of the process, each device's default stream, and the order between them: work in the default stream
// waits for all earlier work of the device's blocking streams, and their later work waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/rig/emulated_cuda/runtime/cuda_api.h"
#include "tests/rig/emulated_cuda/runtime/stream.h"

namespace weft::emulated_cuda {

// Handles 0, 1 (legacy) and 2 (per thread) of the CUDA manual all mean the device's default stream here.
bool is_default_stream(cudaStream_t handle);

// Thread-safe.
class StreamTable {
 public:
  cudaStream_t create(int device, bool blocking);
  // Waits for the stream's work. False for an unknown handle.
  bool destroy(cudaStream_t handle);
  // The stream of a handle, null for an unknown one. `device` tells whose default stream is meant.
  std::shared_ptr<Stream> find(cudaStream_t handle, int device);

  // Queues work in the order described above. False for an unknown handle.
  bool enqueue(cudaStream_t handle, int device, std::function<void()> work);
  // A milestone behind everything that the handle's stream has to wait for; null for an unknown handle.
  std::shared_ptr<Milestone> milestone(cudaStream_t handle, int device);

  // Waits for the default stream and the blocking streams of a device.
  void synchronize_default(int device);
  // Waits for all streams of a device.
  void synchronize_device(int device);

 private:
  enum class Which { blocking, all };
  std::vector<std::shared_ptr<Stream>> streams_of(int device, Which which);
  std::shared_ptr<Stream> default_stream(int device);

  std::mutex mutex_;
  std::map<Stream*, std::shared_ptr<Stream>> streams_;
  std::map<int, std::shared_ptr<Stream>> default_streams_;
  std::uint64_t last_id_ = 1000;  // ids below belong to default streams
};

// The table of the process, never destroyed.
StreamTable& stream_table();

}  // namespace weft::emulated_cuda
