#include "tests/rig/emulated_cuda/runtime/device.h"

namespace weft::emulated_cuda {
namespace {

thread_local int thread_device = 0;

// Numbers from the CUDA manual's table of device attributes.
enum Attribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,
  kMaxBlockDimY = 3,
  kMaxBlockDimZ = 4,
  kMaxGridDimX = 5,
  kMaxGridDimY = 6,
  kMaxGridDimZ = 7,
  kMaxSharedMemoryPerBlock = 8,
  kTotalConstantMemory = 9,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kClockRate = 13,
  kTextureAlignment = 14,
  kGpuOverlap = 15,
  kMultiprocessorCount = 16,
  kCanMapHostMemory = 19,
  kConcurrentKernels = 31,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kUnifiedAddressing = 41,
  kPciDomainId = 50,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kStreamPriorities = 78,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxSharedMemoryPerBlockOptIn = 97,
  kGpuDirectRdma = 116,
  kDmaBuf = 124,
};

// Shared memory that a block may ask for. NCCL 2.29.7 fails below 82,240 bytes; 166,912 is an A100's figure.
constexpr int kSharedMemoryOptInBytes = 166912;

}  // namespace

int device_count() {
  return int(this_host().gpus.size());
}

bool is_device_ordinal(int device) {
  return device >= 0 && device < device_count();
}

const Gpu& device(int ordinal) {
  return this_host().gpus[std::size_t(ordinal)];
}

int current_device() {
  return thread_device;
}

void set_current_device(int ordinal) {
  thread_device = ordinal;
}

int device_attribute(int attribute, int ordinal) {
  const Gpu& gpu = device(ordinal);
  switch (attribute) {
    case kMaxThreadsPerBlock:
    case kMaxBlockDimX:
    case kMaxBlockDimY:
      return 1024;
    case kMaxBlockDimZ:
      return 64;
    case kMaxGridDimX:
      return 0x7fffffff;
    case kMaxGridDimY:
    case kMaxGridDimZ:
      return 65535;
    case kMaxSharedMemoryPerBlock:
      return 49152;
    case kTotalConstantMemory:
    case kMaxRegistersPerBlock:
      return 65536;
    case kWarpSize:
      return 32;
    case kClockRate:
      return 1410000;
    case kTextureAlignment:
      return 512;
    case kMultiprocessorCount:
      return 108;
    case kGpuOverlap:
    case kCanMapHostMemory:
    case kConcurrentKernels:
    case kUnifiedAddressing:
    case kStreamPriorities:
      return 1;
    case kPciBusId:
      return int(gpu.address.bus);
    case kPciDeviceId:
      return int(gpu.address.device);
    case kPciDomainId:
      return int(gpu.address.domain);
    case kComputeCapabilityMajor:
      return gpu.compute_major;
    case kComputeCapabilityMinor:
      return gpu.compute_minor;
    case kMaxSharedMemoryPerMultiprocessor:
      return 167936;
    case kMaxSharedMemoryPerBlockOptIn:
      return kSharedMemoryOptInBytes;
    case kGpuDirectRdma:
      return gpu.gpudirect;
    case kDmaBuf:
      return gpu.dmabuf;
    default:
      return 0;
  }
}

}  // namespace weft::emulated_cuda
