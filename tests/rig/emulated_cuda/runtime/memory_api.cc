// Public functions about memory.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/rig/emulated_cuda/emulated_cuda.h"
#include "tests/rig/emulated_cuda/runtime/cuda_api.h"
#include "tests/rig/emulated_cuda/runtime/device.h"
#include "tests/rig/emulated_cuda/runtime/errors.h"
#include "tests/rig/emulated_cuda/runtime/memory_table.h"
#include "tests/rig/emulated_cuda/runtime/stream_table.h"

using namespace weft::emulated_cuda;

namespace {

int allocate(void** memory, std::size_t bytes, MemoryKind kind) {
  *memory = nullptr;
  if (bytes == 0) return kCudaSuccess;
  const bool exportable = kind == MemoryKind::device && device(current_device()).dmabuf;
  auto result = memory_table().allocate(bytes, kind, current_device(), exportable);
  if (!result) return remember(kCudaOutOfMemory);
  *memory = *result;
  return kCudaSuccess;
}

int release(void* memory) {
  if (!memory || memory_table().release(memory)) return kCudaSuccess;
  return remember(kCudaInvalidValue);
}

int enqueue(cudaStream_t stream, std::function<void()> work) {
  const bool queued = stream_table().enqueue(stream, current_device(), std::move(work));
  return queued ? kCudaSuccess : remember(kCudaInvalidResourceHandle);
}

// Memory that the runtime doesn't know: the caller may reuse it as soon as an asynchronous call returns.
bool is_pageable(const void* address) {
  return !memory_table().find(address);
}

}  // namespace

extern "C" {

EMULATED_CUDA_EXPORT bool emulated_cuda_is_device(const void* address, std::size_t bytes) {
  return memory_table().is_device(address, bytes);
}

int cudaMalloc(void** memory, std::size_t bytes) {
  return allocate(memory, bytes, MemoryKind::device);
}

int cudaFree(void* memory) {
  if (!memory) return kCudaSuccess;
  stream_table().synchronize_device(current_device());
  return release(memory);
}

int cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return allocate(memory, bytes, MemoryKind::host);
}
int cudaFreeHost(void* memory) {
  return release(memory);
}

int cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  memory_table().adopt(memory, bytes, current_device());
  return kCudaSuccess;
}

int cudaHostUnregister(void* memory) {
  return release(memory);
}

int cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned) {
  if (is_pageable(host_pointer)) return remember(kCudaInvalidValue);
  *device_pointer = host_pointer;
  return kCudaSuccess;
}

int cudaPointerGetAttributes(CudaPointerAttributes* attributes, const void* pointer) {
  void* address = const_cast<void*>(pointer);
  const auto allocation = memory_table().find(pointer);
  if (!allocation) {
    *attributes = {0, -2, nullptr, address};
    return kCudaSuccess;
  }
  const bool host = allocation->kind == MemoryKind::host;
  *attributes = {int(allocation->kind), allocation->device, address, host ? address : nullptr};
  return kCudaSuccess;
}

int cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  stream_table().synchronize_default(current_device());
  std::memmove(to, from, bytes);
  return kCudaSuccess;
}

int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, cudaStream_t stream) {
  if (is_pageable(from)) {
    const auto* begin = static_cast<const char*>(from);
    auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    return enqueue(stream, [=] { std::memcpy(to, staged->data(), staged->size()); });
  }
  const int code = enqueue(stream, [=] { std::memmove(to, from, bytes); });
  if (code == kCudaSuccess && is_pageable(to)) stream_table().find(stream, current_device())->synchronize();
  return code;
}

int cudaMemset(void* memory, int value, std::size_t bytes) {
  stream_table().synchronize_default(current_device());
  std::memset(memory, value, bytes);
  return kCudaSuccess;
}

int cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memset(memory, value, bytes); });
}

// Pools: NCCL makes one and allocates from it; every allocation is its own mapping, so a pool holds nothing.
int cudaMemPoolCreate(void** pool, const void*) {
  static char the_pool;
  *pool = &the_pool;
  return kCudaSuccess;
}

int cudaMemPoolDestroy(void*) {
  return kCudaSuccess;
}
int cudaMemPoolSetAttribute(void*, int, void*) {
  return kCudaSuccess;
}

int cudaMallocFromPoolAsync(void** memory, std::size_t bytes, void*, cudaStream_t) {
  return allocate(memory, bytes, MemoryKind::device);
}

int cudaFreeAsync(void* memory, cudaStream_t stream) {
  return enqueue(stream, [=] { memory_table().release(memory); });
}

// Memory shared between processes is not emulated; NCCL goes through shared host memory instead.
int cudaIpcGetMemHandle(void*, void*) {
  return remember(kCudaNotSupported);
}
int cudaIpcOpenMemHandle(void**, const void*, unsigned) {
  return remember(kCudaNotSupported);
}
int cudaIpcCloseMemHandle(void*) {
  return remember(kCudaNotSupported);
}

}  // extern "C"
