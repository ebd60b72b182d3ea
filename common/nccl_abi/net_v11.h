// NCCL's net interface v11 (NCCL 2.28 and 2.29 take it as their newest, later releases take it too). Our own
// declarations; semantics in docs/nccl-interfaces.md. Layout: x86-64.
#pragma once

#include "common/nccl_abi/net_types.h"

extern "C" {

enum : int { NCCL_NET_MAX_DEVS_PER_NIC_V11 = 4 };

struct ncclNetVDeviceProps_v11_t {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V11];
};

struct ncclNetCommConfig_v11_t {
  int trafficClass;  // -1: not given
};

struct ncclNetCommAttr_v11_t {
  std::int32_t maxConcurrentPeers;
  std::int32_t minConcurrentPeers;
  std::int32_t maxFlowsPerPeer;
  std::int32_t minFlowsPerPeer;
};

struct ncclNetAttr_v11_t {
  ncclNetCommAttr_v11_t sendCommAttr;
  ncclNetCommAttr_v11_t recvCommAttr;
  std::uint32_t op;
  std::uint32_t algo;
  std::uint32_t proto;
};

struct ncclNetProperties_v11_t {
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
  ncclNetVDeviceProps_v11_t vProps;
  std::size_t maxP2pBytes;
  std::size_t maxCollBytes;
  int maxMultiRequestSize;
};

struct ncclNet_v11_t {
  const char* name;
  ncclResult_t (*init)(void** context, std::uint64_t commId, ncclNetCommConfig_v11_t* config, ncclDebugLogger_t logger,
                       ncclProfilerCallback_t profiler);
  ncclResult_t (*devices)(int* count);
  ncclResult_t (*getProperties)(int device, ncclNetProperties_v11_t* properties);
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
  ncclResult_t (*makeVDevice)(int* device, ncclNetVDeviceProps_v11_t* properties);
  ncclResult_t (*finalize)(void* context);
  ncclResult_t (*setNetAttr)(void* context, ncclNetAttr_v11_t* attributes);
};

}  // extern "C"

static_assert(sizeof(ncclNetVDeviceProps_v11_t) == 20);
static_assert(sizeof(ncclNetCommConfig_v11_t) == 4);
static_assert(sizeof(ncclNetAttr_v11_t) == 44);
static_assert(sizeof(ncclNetProperties_v11_t) == 112);
static_assert(offsetof(ncclNetProperties_v11_t, forceFlush) == 32);
static_assert(offsetof(ncclNetProperties_v11_t, speed) == 36);
static_assert(offsetof(ncclNetProperties_v11_t, port) == 40);
static_assert(offsetof(ncclNetProperties_v11_t, latency) == 44);
static_assert(offsetof(ncclNetProperties_v11_t, maxComms) == 48);
static_assert(offsetof(ncclNetProperties_v11_t, maxRecvs) == 52);
static_assert(offsetof(ncclNetProperties_v11_t, netDeviceType) == 56);
static_assert(offsetof(ncclNetProperties_v11_t, netDeviceVersion) == 60);
static_assert(offsetof(ncclNetProperties_v11_t, vProps) == 64);
static_assert(offsetof(ncclNetProperties_v11_t, maxP2pBytes) == 88);
static_assert(offsetof(ncclNetProperties_v11_t, maxCollBytes) == 96);
static_assert(offsetof(ncclNetProperties_v11_t, maxMultiRequestSize) == 104);
static_assert(sizeof(ncclNet_v11_t) == 176);
static_assert(offsetof(ncclNet_v11_t, regMr) == 56);
static_assert(offsetof(ncclNet_v11_t, isend) == 80);
static_assert(offsetof(ncclNet_v11_t, test) == 104);
static_assert(offsetof(ncclNet_v11_t, makeVDevice) == 152);
static_assert(offsetof(ncclNet_v11_t, finalize) == 160);
static_assert(offsetof(ncclNet_v11_t, setNetAttr) == 168);
