// Public functions about streams.
#include <utility>

#include "tests/rig/emulated_cuda/runtime/cuda_api.h"
#include "tests/rig/emulated_cuda/runtime/device.h"
#include "tests/rig/emulated_cuda/runtime/errors.h"
#include "tests/rig/emulated_cuda/runtime/stream_table.h"

using namespace weft::emulated_cuda;

namespace {

// cudaStreamCaptureStatusNone: work is never captured into a graph.
constexpr int kNotCapturing = 0;

thread_local int capture_mode = 0;

}  // namespace

extern "C" {

int cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, 0);
}

int cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = stream_table().create(current_device(), (flags & kStreamNonBlocking) == 0);
  return kCudaSuccess;
}

int cudaStreamDestroy(cudaStream_t stream) {
  const bool known = !is_default_stream(stream) && stream_table().destroy(stream);
  return known ? kCudaSuccess : remember(kCudaInvalidResourceHandle);
}

int cudaStreamSynchronize(cudaStream_t handle) {
  if (is_default_stream(handle)) {
    stream_table().synchronize_default(current_device());
    return kCudaSuccess;
  }
  const auto stream = stream_table().find(handle, current_device());
  if (!stream) return remember(kCudaInvalidResourceHandle);
  stream->synchronize();
  return kCudaSuccess;
}

int cudaStreamQuery(cudaStream_t handle) {
  const auto stream = stream_table().find(handle, current_device());
  if (!stream) return remember(kCudaInvalidResourceHandle);
  return stream->idle() ? kCudaSuccess : kCudaNotReady;
}

int cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  const auto stream = stream_table().find(handle, current_device());
  if (!stream) return remember(kCudaInvalidResourceHandle);
  *id = stream->id();
  return kCudaSuccess;
}

int cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user) {
  const bool queued = stream_table().enqueue(stream, current_device(), [=] { function(user); });
  return queued ? kCudaSuccess : remember(kCudaInvalidResourceHandle);
}

int cudaThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kCudaSuccess;
}

int cudaStreamIsCapturing(cudaStream_t, int* status) {
  *status = kNotCapturing;
  return kCudaSuccess;
}

int cudaStreamGetCaptureInfo_v2(cudaStream_t, int* status, unsigned long long*, void**, const void**, std::size_t*) {
  *status = kNotCapturing;
  return kCudaSuccess;
}

int cudaStreamGetCaptureInfo_v3(cudaStream_t, int* status, unsigned long long*, void**, const void**, const void**,
                                std::size_t*) {
  *status = kNotCapturing;
  return kCudaSuccess;
}

// Functions about graphs have to exist for the linker. They are reached while a stream captures, so never; they refuse.
#define EMULATED_CUDA_REFUSE(name)      \
  EMULATED_CUDA_EXPORT int name(void) { \
    return remember(kCudaNotSupported); \
  }
EMULATED_CUDA_REFUSE(cudaStreamUpdateCaptureDependencies_v2)
EMULATED_CUDA_REFUSE(cudaGraphAddDependencies)
EMULATED_CUDA_REFUSE(cudaGraphAddDependencies_v2)
EMULATED_CUDA_REFUSE(cudaGraphAddEventRecordNode)
EMULATED_CUDA_REFUSE(cudaGraphAddEventWaitNode)
EMULATED_CUDA_REFUSE(cudaGraphAddHostNode)
EMULATED_CUDA_REFUSE(cudaGraphAddKernelNode)
#undef EMULATED_CUDA_REFUSE

}  // extern "C"
