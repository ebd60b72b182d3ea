// Public functions about events.
#include "tests/rig/emulated_cuda/runtime/cuda_api.h"
#include "tests/rig/emulated_cuda/runtime/device.h"
#include "tests/rig/emulated_cuda/runtime/errors.h"
#include "tests/rig/emulated_cuda/runtime/event.h"
#include "tests/rig/emulated_cuda/runtime/stream_table.h"

using namespace weft::emulated_cuda;

namespace {

Event* event_of(cudaEvent_t handle) {
  return reinterpret_cast<Event*>(handle);
}

}  // namespace

int weft::emulated_cuda::record(cudaEvent_t event, cudaStream_t stream) {
  auto milestone = stream_table().milestone(stream, current_device());
  if (!milestone) return remember(kCudaInvalidResourceHandle);
  event_of(event)->set(std::move(milestone));
  return kCudaSuccess;
}

extern "C" {

int cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

int cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return kCudaSuccess;
}

int cudaEventDestroy(cudaEvent_t event) {
  delete event_of(event);
  return kCudaSuccess;
}

int cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record(event, stream);
}

int cudaEventQuery(cudaEvent_t event) {
  const auto milestone = event_of(event)->milestone();
  return !milestone || milestone->reached() ? kCudaSuccess : kCudaNotReady;
}

int cudaEventSynchronize(cudaEvent_t event) {
  if (const auto milestone = event_of(event)->milestone()) milestone->wait();
  return kCudaSuccess;
}

int cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const auto first = event_of(begin)->milestone(), second = event_of(end)->milestone();
  if (!first || !second) return remember(kCudaInvalidResourceHandle);
  if (!first->reached() || !second->reached()) return kCudaNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(second->time() - first->time()).count();
  return kCudaSuccess;
}

int cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  auto milestone = event_of(event)->milestone();
  if (!milestone) return kCudaSuccess;
  const bool queued = stream_table().enqueue(stream, current_device(), [milestone] { milestone->wait(); });
  return queued ? kCudaSuccess : remember(kCudaInvalidResourceHandle);
}

}  // extern "C"
