// The public CUDA runtime functions that this library implements: our own declarations, after NVIDIA's public reference
// manual of CUDA 12. Those that NCCL calls, and the few that programs on the rig need.
#pragma once

#include <cstddef>
#include <cstdint>

#define EMULATED_CUDA_EXPORT __attribute__((visibility("default")))

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaHostFn_t = void (*)(void* user);

// Error codes, from the reference manual's table of cudaError.
enum CudaError : int {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaOutOfMemory = 2,
  kCudaInvalidDeviceFunction = 98,
  kCudaInvalidDevice = 101,
  kCudaPeerAccessUnsupported = 217,
  kCudaInvalidResourceHandle = 400,
  kCudaNotReady = 600,
  kCudaNotSupported = 801,
};

constexpr unsigned kStreamNonBlocking = 1;

struct CudaDim3 {
  unsigned x, y, z;
};

// cudaPointerAttributes.
struct CudaPointerAttributes {
  int type;  // 0 unknown, 1 host, 2 device
  int device;
  void* device_pointer;
  void* host_pointer;
};
static_assert(sizeof(CudaPointerAttributes) == 24);

// cudaFuncAttributes: the leading members; CUDA 12 has 144 bytes, of which only these are written.
struct CudaFunctionAttributes {
  std::size_t shared_bytes, constant_bytes, local_bytes;
  int max_threads_per_block, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared_bytes, carveout;
};

extern "C" {

EMULATED_CUDA_EXPORT int cudaGetDeviceCount(int* count);
EMULATED_CUDA_EXPORT int cudaGetDevice(int* device);
EMULATED_CUDA_EXPORT int cudaSetDevice(int device);
EMULATED_CUDA_EXPORT int cudaDriverGetVersion(int* version);
EMULATED_CUDA_EXPORT int cudaRuntimeGetVersion(int* version);
EMULATED_CUDA_EXPORT int cudaDeviceGetAttribute(int* value, int attribute, int device);
EMULATED_CUDA_EXPORT int cudaDeviceGetPCIBusId(char* text, int length, int device);
EMULATED_CUDA_EXPORT int cudaDeviceGetByPCIBusId(int* device, const char* text);
EMULATED_CUDA_EXPORT int cudaGetDeviceProperties_v2(void* properties, int device);
EMULATED_CUDA_EXPORT int cudaDeviceCanAccessPeer(int* can, int device, int peer);
EMULATED_CUDA_EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
EMULATED_CUDA_EXPORT int cudaDeviceSetLimit(int limit, std::size_t value);
EMULATED_CUDA_EXPORT int cudaDeviceSynchronize();

EMULATED_CUDA_EXPORT const char* cudaGetErrorString(int error);
EMULATED_CUDA_EXPORT const char* cudaGetErrorName(int error);
EMULATED_CUDA_EXPORT int cudaGetLastError();
EMULATED_CUDA_EXPORT int cudaPeekAtLastError();

EMULATED_CUDA_EXPORT int cudaMalloc(void** memory, std::size_t bytes);
EMULATED_CUDA_EXPORT int cudaFree(void* memory);
EMULATED_CUDA_EXPORT int cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags);
EMULATED_CUDA_EXPORT int cudaFreeHost(void* memory);
EMULATED_CUDA_EXPORT int cudaHostRegister(void* memory, std::size_t bytes, unsigned flags);
EMULATED_CUDA_EXPORT int cudaHostUnregister(void* memory);
EMULATED_CUDA_EXPORT int cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned flags);
EMULATED_CUDA_EXPORT int cudaPointerGetAttributes(CudaPointerAttributes* attributes, const void* pointer);
EMULATED_CUDA_EXPORT int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind);
EMULATED_CUDA_EXPORT int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, cudaStream_t stream);
EMULATED_CUDA_EXPORT int cudaMemset(void* memory, int value, std::size_t bytes);
EMULATED_CUDA_EXPORT int cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream);
EMULATED_CUDA_EXPORT int cudaMemPoolCreate(void** pool, const void* properties);
EMULATED_CUDA_EXPORT int cudaMemPoolDestroy(void* pool);
EMULATED_CUDA_EXPORT int cudaMemPoolSetAttribute(void* pool, int attribute, void* value);
EMULATED_CUDA_EXPORT int cudaMallocFromPoolAsync(void** memory, std::size_t bytes, void* pool, cudaStream_t stream);
EMULATED_CUDA_EXPORT int cudaFreeAsync(void* memory, cudaStream_t stream);
EMULATED_CUDA_EXPORT int cudaIpcGetMemHandle(void* handle, void* memory);
EMULATED_CUDA_EXPORT int cudaIpcOpenMemHandle(void** memory, const void* handle, unsigned flags);
EMULATED_CUDA_EXPORT int cudaIpcCloseMemHandle(void* memory);

EMULATED_CUDA_EXPORT int cudaStreamCreate(cudaStream_t* stream);
EMULATED_CUDA_EXPORT int cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
EMULATED_CUDA_EXPORT int cudaStreamDestroy(cudaStream_t stream);
EMULATED_CUDA_EXPORT int cudaStreamSynchronize(cudaStream_t stream);
EMULATED_CUDA_EXPORT int cudaStreamQuery(cudaStream_t stream);
EMULATED_CUDA_EXPORT int cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
EMULATED_CUDA_EXPORT int cudaStreamGetId(cudaStream_t stream, unsigned long long* id);
EMULATED_CUDA_EXPORT int cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user);
EMULATED_CUDA_EXPORT int cudaThreadExchangeStreamCaptureMode(int* mode);
EMULATED_CUDA_EXPORT int cudaStreamIsCapturing(cudaStream_t stream, int* status);
EMULATED_CUDA_EXPORT int cudaStreamGetCaptureInfo_v2(cudaStream_t stream, int* status, unsigned long long* id,
                                                     void** graph, const void** dependencies, std::size_t* count);
EMULATED_CUDA_EXPORT int cudaStreamGetCaptureInfo_v3(cudaStream_t stream, int* status, unsigned long long* id,
                                                     void** graph, const void** dependencies, const void** edges,
                                                     std::size_t* count);

EMULATED_CUDA_EXPORT int cudaEventCreate(cudaEvent_t* event);
EMULATED_CUDA_EXPORT int cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
EMULATED_CUDA_EXPORT int cudaEventDestroy(cudaEvent_t event);
EMULATED_CUDA_EXPORT int cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
EMULATED_CUDA_EXPORT int cudaEventQuery(cudaEvent_t event);
EMULATED_CUDA_EXPORT int cudaEventSynchronize(cudaEvent_t event);
EMULATED_CUDA_EXPORT int cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

EMULATED_CUDA_EXPORT int cudaFuncGetAttributes(CudaFunctionAttributes* attributes, const void* stub);
EMULATED_CUDA_EXPORT int cudaFuncSetAttribute(const void* stub, int attribute, int value);
EMULATED_CUDA_EXPORT int cudaGetFuncBySymbol(void** function, const void* stub);
EMULATED_CUDA_EXPORT int cudaLaunchKernel(const void* stub, CudaDim3 grid, CudaDim3 block, void** arguments,
                                          std::size_t shared_bytes, cudaStream_t stream);
EMULATED_CUDA_EXPORT int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                                 int* status);

// Called by code that a CUDA compiler made, from static constructors.
EMULATED_CUDA_EXPORT void** __cudaRegisterFatBinary(void* image);
EMULATED_CUDA_EXPORT void __cudaRegisterFatBinaryEnd(void** handle);
EMULATED_CUDA_EXPORT void __cudaUnregisterFatBinary(void** handle);
EMULATED_CUDA_EXPORT char __cudaInitModule(void** handle);
EMULATED_CUDA_EXPORT void __cudaRegisterFunction(void** handle, const char* stub, char* host_name, const char* name,
                                                 int thread_limit, void* thread_id, void* block_id, void* block_size,
                                                 void* grid_size, int* warp_size);
EMULATED_CUDA_EXPORT void __cudaRegisterVar(void** handle, char* variable, char* host_name, const char* name,
                                            int external, std::size_t bytes, int constant, int global);
EMULATED_CUDA_EXPORT int __cudaPopCallConfiguration(CudaDim3* grid, CudaDim3* block, std::size_t* shared_bytes,
                                                    void* stream);

}  // extern "C"
