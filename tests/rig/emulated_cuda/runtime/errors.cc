#include "tests/rig/emulated_cuda/runtime/errors.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/rig/emulated_cuda/runtime/cuda_api.h"

namespace weft::emulated_cuda {
namespace {

thread_local int last_error = kCudaSuccess;

struct ErrorText {
  int code;
  const char *name, *text;
};

constexpr ErrorText kTexts[] = {
    {kCudaSuccess, "cudaSuccess", "no error"},
    {kCudaInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kCudaOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {kCudaInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {kCudaInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kCudaPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported", "peer access is not supported"},
    {kCudaInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {kCudaNotReady, "cudaErrorNotReady", "device not ready"},
    {kCudaNotSupported, "cudaErrorNotSupported", "operation not supported by the emulated runtime"},
};

const ErrorText& text_of(int error) {
  static constexpr ErrorText unknown{-1, "cudaErrorUnknown", "unknown error"};
  for (const ErrorText& entry : kTexts)
    if (entry.code == error) return entry;
  return unknown;
}

}  // namespace

int remember(int error) {
  if (error != kCudaSuccess && error != kCudaNotReady) last_error = error;
  return error;
}

void not_emulated(const std::string& what) {
  std::fprintf(stderr, "emulated CUDA: not emulated: %s\n", what.c_str());
  std::abort();
}

}  // namespace weft::emulated_cuda

extern "C" {

const char* cudaGetErrorString(int error) {
  return weft::emulated_cuda::text_of(error).text;
}
const char* cudaGetErrorName(int error) {
  return weft::emulated_cuda::text_of(error).name;
}
int cudaGetLastError() {
  return std::exchange(weft::emulated_cuda::last_error, kCudaSuccess);
}
int cudaPeekAtLastError() {
  return weft::emulated_cuda::last_error;
}

}  // extern "C"
