// The few public NVML functions that NCCL calls, as libnvidia-ml.so.1; they answer from the host file.
#include <cstdint>

#include "tests/rig/emulated_cuda/host/host_file.h"

#define NVML_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using weft::emulated_cuda::Gpu;
using weft::emulated_cuda::this_host;

// nvmlReturn_t.
enum NvmlReturn : int { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6 };

// nvmlGpuP2PStatus_t: no access between GPUs, as the emulated runtime says too.
constexpr int kP2pNotSupported = 4;

// A device handle is the address of the host file's entry.
using Device = const Gpu*;

int index_of(Device device) {
  return int(device - this_host().gpus.data());
}

int count(unsigned* number) {
  *number = unsigned(this_host().gpus.size());
  return kSuccess;
}

}  // namespace

NVML_EXPORT int nvmlInit() {
  return kSuccess;
}
NVML_EXPORT int nvmlInit_v2() {
  return kSuccess;
}
NVML_EXPORT int nvmlShutdown() {
  return kSuccess;
}
NVML_EXPORT int nvmlDeviceGetCount(unsigned* number) {
  return count(number);
}
NVML_EXPORT int nvmlDeviceGetCount_v2(unsigned* number) {
  return count(number);
}

NVML_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  if (index >= this_host().gpus.size()) return kInvalidArgument;
  *device = &this_host().gpus[index];
  return kSuccess;
}

NVML_EXPORT int nvmlDeviceGetHandleByPciBusId(const char* text, Device* device) {
  const auto address = weft::emulated_cuda::parse_pci_address(text);
  if (!address) return kInvalidArgument;
  for (const Gpu& gpu : this_host().gpus) {
    if (gpu.address == *address) {
      *device = &gpu;
      return kSuccess;
    }
  }
  return kNotFound;
}

NVML_EXPORT int nvmlDeviceGetIndex(Device device, unsigned* index) {
  *index = unsigned(index_of(device));
  return kSuccess;
}

NVML_EXPORT int nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  *major = device->compute_major;
  *minor = device->compute_minor;
  return kSuccess;
}

NVML_EXPORT int nvmlDeviceGetP2PStatus(Device, Device, int, int* status) {
  *status = kP2pNotSupported;
  return kSuccess;
}

NVML_EXPORT const char* nvmlErrorString(int code) {
  switch (code) {
    case kSuccess:
      return "success";
    case kNotSupported:
      return "not supported";
    case kNotFound:
      return "not found";
    default:
      return "error of the emulated NVML";
  }
}

// There is no NVLink.
NVML_EXPORT int nvmlDeviceGetNvLinkState(Device, unsigned, int* active) {
  *active = 0;
  return kNotSupported;
}
NVML_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo(Device, unsigned, void*) {
  return kNotSupported;
}
NVML_EXPORT int nvmlDeviceGetNvLinkCapability(Device, unsigned, int, unsigned* capable) {
  *capable = 0;
  return kNotSupported;
}
NVML_EXPORT int nvmlDeviceGetFieldValues(Device, int, void*) {
  return kNotSupported;
}
