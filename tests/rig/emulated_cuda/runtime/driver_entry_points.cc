// The documented driver functions that NCCL asks for by name (cudaGetDriverEntryPoint). What is not in the table is
// absent: without cuMemCreate NCCL leaves virtual memory management, NVLS and symmetric memory alone by itself.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "common/text/format.h"
#include "tests/rig/emulated_cuda/emulated_cuda.h"
#include "tests/rig/emulated_cuda/runtime/cuda_api.h"
#include "tests/rig/emulated_cuda/runtime/device.h"
#include "tests/rig/emulated_cuda/runtime/errors.h"
#include "tests/rig/emulated_cuda/runtime/event.h"
#include "tests/rig/emulated_cuda/runtime/kernel_registry.h"
#include "tests/rig/emulated_cuda/runtime/memory_table.h"

namespace weft::emulated_cuda {
namespace {

// CUlaunchConfig and CUlaunchAttribute of the driver's manual.
struct LaunchAttribute {
  int id, padding;
  union {
    char bytes[64];
    cudaEvent_t event;  // of kLaunchCompletionEvent
  };
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfiguration {
  CudaDim3 grid, block;
  unsigned shared_bytes;
  cudaStream_t stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

// The only launch attribute with an effect that NCCL waits for: an event recorded when all blocks have begun.
constexpr int kLaunchCompletionEvent = 12;

// Markers in the `extra` array of a launch.
constexpr std::uintptr_t kArgumentBuffer = 1, kArgumentBufferBytes = 2;

std::vector<char> arguments_of(const Kernel& kernel, void** parameters, void** extra) {
  if (!extra) return pack_arguments(kernel, parameters);
  const char* begin = nullptr;
  std::size_t bytes = 0;
  for (int i = 0; extra[i] != nullptr; i += 2) {
    const auto marker = reinterpret_cast<std::uintptr_t>(extra[i]);
    if (marker == kArgumentBuffer) begin = static_cast<const char*>(extra[i + 1]);
    if (marker == kArgumentBufferBytes) bytes = *static_cast<std::size_t*>(extra[i + 1]);
  }
  return {begin, begin + bytes};
}

int launch_kernel_ex(const LaunchConfiguration* configuration, void* function, void** parameters, void** extra) {
  for (unsigned i = 0; i < configuration->attribute_count; i++) {
    const LaunchAttribute& attribute = configuration->attributes[i];
    if (attribute.id == kLaunchCompletionEvent) record(attribute.event, configuration->stream);
  }
  const Kernel& kernel = *static_cast<const Kernel*>(function);
  return launch(kernel, configuration->grid, configuration->stream, arguments_of(kernel, parameters, extra));
}

int get_error_string(int error, const char** text) {
  *text = cudaGetErrorString(error);
  return kCudaSuccess;
}

int get_error_name(int error, const char** name) {
  *name = cudaGetErrorName(error);
  return kCudaSuccess;
}

int device_get(int* device, int ordinal) {
  if (!is_device_ordinal(ordinal)) return kCudaInvalidDevice;
  *device = ordinal;
  return kCudaSuccess;
}

int device_get_attribute(int* value, int attribute, int device) {
  if (!is_device_ordinal(device)) return kCudaInvalidDevice;
  *value = device_attribute(attribute, device);
  return kCudaSuccess;
}

// A context is its device: the handle is the ordinal plus one, so that no handle is null.
int context_get_current(void** context) {
  *context = reinterpret_cast<void*>(std::uintptr_t(current_device()) + 1);
  return kCudaSuccess;
}

int context_set_current(void* context) {
  if (context) set_current_device(int(reinterpret_cast<std::uintptr_t>(context)) - 1);
  return kCudaSuccess;
}

int context_get_device(int* device) {
  *device = current_device();
  return kCudaSuccess;
}

int memory_get_address_range(void** base, std::size_t* bytes, void* address) {
  const auto allocation = memory_table().find(address);
  if (!allocation) return kCudaInvalidValue;
  if (base) *base = reinterpret_cast<void*>(allocation->base);
  if (bytes) *bytes = allocation->bytes;
  return kCudaSuccess;
}

// CUpointer_attribute.
enum PointerAttribute : int {
  kMemoryType = 2,
  kSyncMemoryOperations = 6,
  kBufferId = 7,
  kDeviceOrdinal = 9,
  kLegacyIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kAllowedHandleTypes = 14,
};

template <class T>
int answer(void* result, T value) {
  std::memcpy(result, &value, sizeof value);
  return kCudaSuccess;
}

int pointer_get_attribute(void* result, int attribute, void* pointer) {
  const auto allocation = memory_table().find(pointer);
  if (!allocation) return kCudaInvalidValue;
  switch (attribute) {
    case kMemoryType:
      return answer(result, unsigned(allocation->kind));
    case kSyncMemoryOperations:
    case kLegacyIpcCapable:
      return answer(result, 0);
    case kBufferId:
      return answer(result, allocation->id);
    case kDeviceOrdinal:
      return answer(result, allocation->device);
    case kRangeStart:
      return answer(result, allocation->base);
    case kRangeSize:
      return answer(result, allocation->bytes);
    case kAllowedHandleTypes:
      return answer(result, std::uint64_t(0));
    default:
      not_emulated(text::format("cuPointerGetAttribute({})", attribute));
  }
}

// The "DMA-BUF" of a range of device memory: a descriptor of the memory file behind it. NCCL registers parts of an
// allocation with offset 0, so the file position tells where the range begins.
int memory_get_handle_for_range(int* handle, void* address, std::size_t, int, unsigned long long) {
  const auto allocation = memory_table().find(address);
  if (!allocation || allocation->descriptor < 0) return kCudaInvalidValue;
  // Opened anew, not duplicated: each handle needs a file position of its own.
  const int descriptor = open(text::format("/proc/self/fd/{}", allocation->descriptor).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return kCudaOutOfMemory;
  lseek(descriptor, off_t(reinterpret_cast<std::uintptr_t>(address) - allocation->base), SEEK_SET);
  *handle = descriptor;
  return kCudaSuccess;
}

struct EntryPoint {
  const char* name;
  void* function;
};

template <class Function>
EntryPoint entry(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

}  // namespace
}  // namespace weft::emulated_cuda

extern "C" {

EMULATED_CUDA_EXPORT int emulated_cuda_driver_entry_point(const char* name, void** function, int* status) {
  using namespace weft::emulated_cuda;
  static const EntryPoint table[] = {
      entry("cuGetErrorString", get_error_string),
      entry("cuGetErrorName", get_error_name),
      entry("cuDeviceGet", device_get),
      entry("cuDeviceGetAttribute", device_get_attribute),
      entry("cuLaunchKernelEx", launch_kernel_ex),
      entry("cuCtxGetCurrent", context_get_current),
      entry("cuCtxSetCurrent", context_set_current),
      entry("cuCtxGetDevice", context_get_device),
      entry("cuMemGetAddressRange", memory_get_address_range),
      entry("cuPointerGetAttribute", pointer_get_attribute),
      entry("cuMemGetHandleForAddressRange", memory_get_handle_for_range),
  };
  constexpr int kFound = 0, kNotFound = 1;
  *function = nullptr;
  for (const EntryPoint& candidate : table)
    if (std::strcmp(candidate.name, name) == 0) *function = candidate.function;
  if (status) *status = *function ? kFound : kNotFound;
  return kCudaSuccess;
}

int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, int* status) {
  return emulated_cuda_driver_entry_point(name, function, status);
}

}  // extern "C"
