// Public functions about devices.
#include <cstdio>
#include <cstring>

#include "tests/rig/emulated_cuda/emulated_cuda.h"
#include "tests/rig/emulated_cuda/runtime/cuda_api.h"
#include "tests/rig/emulated_cuda/runtime/device.h"
#include "tests/rig/emulated_cuda/runtime/errors.h"
#include "tests/rig/emulated_cuda/runtime/stream_table.h"

using namespace weft::emulated_cuda;

namespace {

// CUDA 12.4. NCCL leaves its function pointers empty for drivers below 12.0, and prefers memory that is not emulated
// from 12.6 on.
constexpr int kVersion = 12040;

// cudaDeviceProp of CUDA 12: its size and the offsets of what NCCL and simple programs read. The rest stays zero.
constexpr std::size_t kPropertiesBytes = 1032;
enum PropertyOffset : std::size_t {
  kName = 0,  // 256 bytes
  kUuid = 256,
  kTotalGlobalMemory = 288,
  kSharedMemoryPerBlock = 296,
  kRegistersPerBlock = 304,
  kWarpSize = 308,
  kMaxThreadsPerBlock = 320,
  kMajor = 360,
  kMinor = 364,
  kMultiprocessorCount = 388,
  kCanMapHostMemory = 400,
};

constexpr std::size_t kTotalMemoryBytes = std::size_t(16) << 30;

template <class T>
void put(void* properties, PropertyOffset offset, T value) {
  std::memcpy(static_cast<char*>(properties) + offset, &value, sizeof value);
}

}  // namespace

extern "C" {

EMULATED_CUDA_EXPORT bool emulated_cuda_has_defect(const char* name) {
  return has_defect(name);
}

int cudaGetDeviceCount(int* count) {
  *count = device_count();
  return kCudaSuccess;
}

int cudaGetDevice(int* device) {
  *device = current_device();
  return kCudaSuccess;
}

int cudaSetDevice(int device) {
  if (!is_device_ordinal(device)) return remember(kCudaInvalidDevice);
  set_current_device(device);
  return kCudaSuccess;
}

int cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return kCudaSuccess;
}

int cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return kCudaSuccess;
}

int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (!is_device_ordinal(device)) return remember(kCudaInvalidDevice);
  *value = device_attribute(attribute, device);
  return kCudaSuccess;
}

int cudaDeviceGetPCIBusId(char* text, int length, int ordinal) {
  if (!is_device_ordinal(ordinal)) return remember(kCudaInvalidDevice);
  const std::string address = device(ordinal).address.text();
  if (length <= int(address.size())) return remember(kCudaInvalidValue);
  std::memcpy(text, address.c_str(), address.size() + 1);
  return kCudaSuccess;
}

int cudaDeviceGetByPCIBusId(int* ordinal, const char* text) {
  const auto address = parse_pci_address(text);
  if (!address) return remember(kCudaInvalidValue);
  for (int i = 0; i < device_count(); i++) {
    if (device(i).address == *address) {
      *ordinal = i;
      return kCudaSuccess;
    }
  }
  return remember(kCudaInvalidDevice);
}

int cudaGetDeviceProperties_v2(void* properties, int ordinal) {
  if (!is_device_ordinal(ordinal)) return remember(kCudaInvalidDevice);
  std::memset(properties, 0, kPropertiesBytes);
  std::snprintf(static_cast<char*>(properties), 256, "Emulated GPU");
  put(properties, kUuid, device(ordinal).address);
  put(properties, kTotalGlobalMemory, kTotalMemoryBytes);
  put(properties, kSharedMemoryPerBlock, std::size_t(49152));
  put(properties, kRegistersPerBlock, 65536);
  put(properties, kWarpSize, 32);
  put(properties, kMaxThreadsPerBlock, 1024);
  put(properties, kMajor, device(ordinal).compute_major);
  put(properties, kMinor, device(ordinal).compute_minor);
  put(properties, kMultiprocessorCount, 108);
  put(properties, kCanMapHostMemory, 1);
  return kCudaSuccess;
}

// No access between GPUs: NCCL then moves data between the ranks of a host through shared memory.
int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kCudaSuccess;
}

int cudaDeviceEnablePeerAccess(int, unsigned) {
  return remember(kCudaPeerAccessUnsupported);
}

int cudaDeviceSetLimit(int, std::size_t) {
  return kCudaSuccess;
}

int cudaDeviceSynchronize() {
  stream_table().synchronize_device(current_device());
  return kCudaSuccess;
}

}  // extern "C"
