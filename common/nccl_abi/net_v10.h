// NCCL's net interface v10 (the newest of NCCL 2.26 and 2.27). Our own declarations; semantics in
// docs/nccl-interfaces.md. Layout: x86-64.
#pragma once

#include "common/nccl_abi/net_v9.h"

extern "C" {

struct ncclNetCommConfig_v10_t {
  int trafficClass;  // -1: not given
};

struct ncclNet_v10_t {
  const char* name;
  ncclResult_t (*init)(ncclDebugLogger_t logger, ncclProfilerCallback_t profiler);
  ncclResult_t (*devices)(int* count);
  ncclResult_t (*getProperties)(int device, ncclNetProperties_v9_t* properties);
  ncclResult_t (*listen)(int device, void* handle, void** listenComm);
  ncclResult_t (*connect)(int device, ncclNetCommConfig_v10_t* config, void* handle, void** sendComm,
                          ncclNetDeviceHandle_t** deviceHandle);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_t** deviceHandle);
  ncclResult_t (*regMr)(void* comm, void* data, std::size_t size, int type, void** memory);
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, std::size_t size, int type, std::uint64_t offset, int fd,
                              void** memory);
  ncclResult_t (*deregMr)(void* comm, void* memory);
  ncclResult_t (*isend)(void* sendComm, void* data, std::size_t size, int tag, void* memory, void* profilerHandle,
                        void** request);
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, std::size_t* sizes, int* tags, void** memory,
                        void** profilerHandles, void** request);
  ncclResult_t (*iflush)(void* recvComm, int n, void** data, int* sizes, void** memory, void** request);
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  ncclResult_t (*closeSend)(void* sendComm);
  ncclResult_t (*closeRecv)(void* recvComm);
  ncclResult_t (*closeListen)(void* listenComm);
  ncclResult_t (*getDeviceMr)(void* comm, void* memory, void** deviceMemory);
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);
  ncclResult_t (*makeVDevice)(int* device, ncclNetVDeviceProps_v9_t* properties);
};

}  // extern "C"

static_assert(sizeof(ncclNetCommConfig_v10_t) == 4);
static_assert(sizeof(ncclNet_v10_t) == 160);
static_assert(offsetof(ncclNet_v10_t, init) == 8);
static_assert(offsetof(ncclNet_v10_t, devices) == 16);
static_assert(offsetof(ncclNet_v10_t, getProperties) == 24);
static_assert(offsetof(ncclNet_v10_t, listen) == 32);
static_assert(offsetof(ncclNet_v10_t, connect) == 40);
static_assert(offsetof(ncclNet_v10_t, accept) == 48);
static_assert(offsetof(ncclNet_v10_t, regMr) == 56);
static_assert(offsetof(ncclNet_v10_t, regMrDmaBuf) == 64);
static_assert(offsetof(ncclNet_v10_t, deregMr) == 72);
static_assert(offsetof(ncclNet_v10_t, isend) == 80);
static_assert(offsetof(ncclNet_v10_t, irecv) == 88);
static_assert(offsetof(ncclNet_v10_t, iflush) == 96);
static_assert(offsetof(ncclNet_v10_t, test) == 104);
static_assert(offsetof(ncclNet_v10_t, closeSend) == 112);
static_assert(offsetof(ncclNet_v10_t, closeRecv) == 120);
static_assert(offsetof(ncclNet_v10_t, closeListen) == 128);
static_assert(offsetof(ncclNet_v10_t, getDeviceMr) == 136);
static_assert(offsetof(ncclNet_v10_t, irecvConsumed) == 144);
static_assert(offsetof(ncclNet_v10_t, makeVDevice) == 152);
