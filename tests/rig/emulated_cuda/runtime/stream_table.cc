#include "tests/rig/emulated_cuda/runtime/stream_table.h"

#include <utility>

namespace weft::emulated_cuda {

bool is_default_stream(cudaStream_t handle) {
  return reinterpret_cast<std::uintptr_t>(handle) <= 2;
}

cudaStream_t StreamTable::create(int device, bool blocking) {
  const std::lock_guard lock(mutex_);
  auto stream = std::make_shared<Stream>(device, blocking, ++last_id_);
  Stream* key = stream.get();
  streams_.emplace(key, std::move(stream));
  return reinterpret_cast<cudaStream_t>(key);
}

bool StreamTable::destroy(cudaStream_t handle) {
  std::shared_ptr<Stream> stream;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(reinterpret_cast<Stream*>(handle));
    if (found == streams_.end()) return false;
    stream = std::move(found->second);
    streams_.erase(found);
  }
  stream->synchronize();
  return true;
}

std::shared_ptr<Stream> StreamTable::find(cudaStream_t handle, int device) {
  if (is_default_stream(handle)) return default_stream(device);
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(reinterpret_cast<Stream*>(handle));
  return found == streams_.end() ? nullptr : found->second;
}

std::shared_ptr<Stream> StreamTable::default_stream(int device) {
  const std::lock_guard lock(mutex_);
  auto& stream = default_streams_[device];
  if (!stream) stream = std::make_shared<Stream>(device, true, std::uint64_t(device) + 1);
  return stream;
}

std::vector<std::shared_ptr<Stream>> StreamTable::streams_of(int device, Which which) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Stream>> result;
  for (const auto& [key, stream] : streams_) {
    if (stream->device() == device && (which == Which::all || stream->blocking())) result.push_back(stream);
  }
  return result;
}

bool StreamTable::enqueue(cudaStream_t handle, int device, std::function<void()> work) {
  auto stream = find(handle, device);
  if (!stream) return false;
  if (!is_default_stream(handle)) {
    stream->enqueue(std::move(work));
    return true;
  }
  const auto blocking = streams_of(device, Which::blocking);
  for (const auto& other : blocking) {
    if (!other->idle()) stream->wait_for(other->milestone());
  }
  stream->enqueue(std::move(work));
  if (!blocking.empty()) {
    const auto done = stream->milestone();
    for (const auto& other : blocking)
      other->wait_for(done);
  }
  return true;
}

std::shared_ptr<Milestone> StreamTable::milestone(cudaStream_t handle, int device) {
  auto milestone = std::make_shared<Milestone>();
  return enqueue(handle, device, [milestone] { milestone->reach(); }) ? milestone : nullptr;
}

void StreamTable::synchronize_default(int device) {
  for (const auto& stream : streams_of(device, Which::blocking))
    stream->synchronize();
  default_stream(device)->synchronize();
}

void StreamTable::synchronize_device(int device) {
  for (const auto& stream : streams_of(device, Which::all))
    stream->synchronize();
  default_stream(device)->synchronize();
}

StreamTable& stream_table() {
  static StreamTable& table = *new StreamTable;
  return table;
}

}  // namespace weft::emulated_cuda
