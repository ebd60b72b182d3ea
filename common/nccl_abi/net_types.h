// What the versions of NCCL's net interface share.
#pragma once

#include "common/nccl_abi/types.h"

extern "C" {

enum : int { NCCL_PTR_HOST = 0x1, NCCL_PTR_CUDA = 0x2, NCCL_PTR_DMABUF = 0x4 };
enum : int { NCCL_NET_HANDLE_MAXSIZE = 128, NCCL_NET_MAX_REQUESTS = 32 };

enum ncclNetDeviceType : int { NCCL_NET_DEVICE_HOST = 0, NCCL_NET_DEVICE_UNPACK = 1 };
enum : int { NCCL_NET_DEVICE_INVALID_VERSION = 0 };

// Only a plugin that offloads to the device fills one in; Weft never does.
struct ncclNetDeviceHandle_t {
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  void* handle;
  std::size_t size;
  int needsProxyProgress;
};

// An event sink for NCCL's profiler plugins; may be ignored.
using ncclProfilerCallback_t = ncclResult_t (*)(void** event, int type, void* parent, std::int64_t plugin, void* data);

}  // extern "C"

static_assert(sizeof(ncclNetDeviceHandle_t) == 32);
