// NCCL's net interface v12 (the newest of NCCL 2.30 and later). Our own declarations; semantics in
// docs/nccl-interfaces.md. Layout: x86-64.
#pragma once

#include "common/nccl_abi/net_v11.h"

extern "C" {

enum : int { NCCL_NET_MAX_DEVS_PER_NIC_V12 = 8 };

struct ncclNetVDeviceProps_v12_t {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V12];
};

using ncclNetCommConfig_v12_t = ncclNetCommConfig_v11_t;

struct ncclNetProperties_v12_t {
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;  // NCCL_PTR_*
  int regIsGlobal;
  int forceFlush;
  int speed;  // Mbit/s
  int port;
  float latency;  // microseconds
  int maxComms;
  int maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  ncclNetVDeviceProps_v12_t vProps;
  std::size_t maxP2pBytes;
  std::size_t maxCollBytes;
  int maxMultiRequestSize;
  std::int16_t railId;   // -1: not known
  std::int16_t planeId;  // -1: not known
};

struct ncclNet_v12_t {
  const char* name;
  ncclResult_t (*init)(void** context, std::uint64_t commId, ncclNetCommConfig_v12_t* config, ncclDebugLogger_t logger,
                       ncclProfilerCallback_t profiler);
  ncclResult_t (*devices)(int* count);
  ncclResult_t (*getProperties)(int device, ncclNetProperties_v12_t* properties);
  ncclResult_t (*listen)(void* context, int device, void* handle, void** listenComm);
  ncclResult_t (*connect)(void* context, int device, void* handle, void** sendComm,
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
  ncclResult_t (*makeVDevice)(int* device, ncclNetVDeviceProps_v12_t* properties);
  ncclResult_t (*finalize)(void* context);
  ncclResult_t (*setNetAttr)(void* context, ncclNetAttr_v11_t* attributes);
};

}  // extern "C"

static_assert(sizeof(ncclNetVDeviceProps_v12_t) == 36);
static_assert(sizeof(ncclNetProperties_v12_t) == 128);
static_assert(offsetof(ncclNetProperties_v12_t, name) == 0);
static_assert(offsetof(ncclNetProperties_v12_t, pciPath) == 8);
static_assert(offsetof(ncclNetProperties_v12_t, guid) == 16);
static_assert(offsetof(ncclNetProperties_v12_t, ptrSupport) == 24);
static_assert(offsetof(ncclNetProperties_v12_t, regIsGlobal) == 28);
static_assert(offsetof(ncclNetProperties_v12_t, forceFlush) == 32);
static_assert(offsetof(ncclNetProperties_v12_t, speed) == 36);
static_assert(offsetof(ncclNetProperties_v12_t, port) == 40);
static_assert(offsetof(ncclNetProperties_v12_t, latency) == 44);
static_assert(offsetof(ncclNetProperties_v12_t, maxComms) == 48);
static_assert(offsetof(ncclNetProperties_v12_t, maxRecvs) == 52);
static_assert(offsetof(ncclNetProperties_v12_t, netDeviceType) == 56);
static_assert(offsetof(ncclNetProperties_v12_t, netDeviceVersion) == 60);
static_assert(offsetof(ncclNetProperties_v12_t, vProps) == 64);
static_assert(offsetof(ncclNetProperties_v12_t, maxP2pBytes) == 104);
static_assert(offsetof(ncclNetProperties_v12_t, maxCollBytes) == 112);
static_assert(offsetof(ncclNetProperties_v12_t, maxMultiRequestSize) == 120);
static_assert(offsetof(ncclNetProperties_v12_t, railId) == 124);
static_assert(offsetof(ncclNetProperties_v12_t, planeId) == 126);
static_assert(sizeof(ncclNet_v12_t) == 176);
static_assert(offsetof(ncclNet_v12_t, init) == 8);
static_assert(offsetof(ncclNet_v12_t, devices) == 16);
static_assert(offsetof(ncclNet_v12_t, getProperties) == 24);
static_assert(offsetof(ncclNet_v12_t, listen) == 32);
static_assert(offsetof(ncclNet_v12_t, connect) == 40);
static_assert(offsetof(ncclNet_v12_t, accept) == 48);
static_assert(offsetof(ncclNet_v12_t, regMr) == 56);
static_assert(offsetof(ncclNet_v12_t, regMrDmaBuf) == 64);
static_assert(offsetof(ncclNet_v12_t, deregMr) == 72);
static_assert(offsetof(ncclNet_v12_t, isend) == 80);
static_assert(offsetof(ncclNet_v12_t, irecv) == 88);
static_assert(offsetof(ncclNet_v12_t, iflush) == 96);
static_assert(offsetof(ncclNet_v12_t, test) == 104);
static_assert(offsetof(ncclNet_v12_t, closeSend) == 112);
static_assert(offsetof(ncclNet_v12_t, closeRecv) == 120);
static_assert(offsetof(ncclNet_v12_t, closeListen) == 128);
static_assert(offsetof(ncclNet_v12_t, getDeviceMr) == 136);
static_assert(offsetof(ncclNet_v12_t, irecvConsumed) == 144);
static_assert(offsetof(ncclNet_v12_t, makeVDevice) == 152);
static_assert(offsetof(ncclNet_v12_t, finalize) == 160);
static_assert(offsetof(ncclNet_v12_t, setNetAttr) == 168);
