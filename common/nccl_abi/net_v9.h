// NCCL's net interface v9 (the newest of NCCL 2.24 and 2.25). Our own declarations; semantics in
// docs/nccl-interfaces.md. Layout: x86-64.
#pragma once

#include "common/nccl_abi/net_types.h"

extern "C" {

enum : int { NCCL_NET_MAX_DEVS_PER_NIC_V9 = 4 };

struct ncclNetVDeviceProps_v9_t {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V9];
};

struct ncclNetProperties_v9_t {
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
  ncclNetVDeviceProps_v9_t vProps;
  std::size_t maxP2pBytes;
  std::size_t maxCollBytes;
};

struct ncclNet_v9_t {
  const char* name;
  ncclResult_t (*init)(ncclDebugLogger_t logger);
  ncclResult_t (*devices)(int* count);
  ncclResult_t (*getProperties)(int device, ncclNetProperties_v9_t* properties);
  ncclResult_t (*listen)(int device, void* handle, void** listenComm);
  ncclResult_t (*connect)(int device, void* handle, void** sendComm, ncclNetDeviceHandle_t** deviceHandle);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_t** deviceHandle);
  ncclResult_t (*regMr)(void* comm, void* data, std::size_t size, int type, void** memory);
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, std::size_t size, int type, std::uint64_t offset, int fd,
                              void** memory);
  ncclResult_t (*deregMr)(void* comm, void* memory);
  ncclResult_t (*isend)(void* sendComm, void* data, std::size_t size, int tag, void* memory, void** request);
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, std::size_t* sizes, int* tags, void** memory,
                        void** request);
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

static_assert(sizeof(ncclNetVDeviceProps_v9_t) == 20);
static_assert(sizeof(ncclNetProperties_v9_t) == 104);
static_assert(offsetof(ncclNetProperties_v9_t, name) == 0);
static_assert(offsetof(ncclNetProperties_v9_t, pciPath) == 8);
static_assert(offsetof(ncclNetProperties_v9_t, guid) == 16);
static_assert(offsetof(ncclNetProperties_v9_t, ptrSupport) == 24);
static_assert(offsetof(ncclNetProperties_v9_t, regIsGlobal) == 28);
static_assert(offsetof(ncclNetProperties_v9_t, forceFlush) == 32);
static_assert(offsetof(ncclNetProperties_v9_t, speed) == 36);
static_assert(offsetof(ncclNetProperties_v9_t, port) == 40);
static_assert(offsetof(ncclNetProperties_v9_t, latency) == 44);
static_assert(offsetof(ncclNetProperties_v9_t, maxComms) == 48);
static_assert(offsetof(ncclNetProperties_v9_t, maxRecvs) == 52);
static_assert(offsetof(ncclNetProperties_v9_t, netDeviceType) == 56);
static_assert(offsetof(ncclNetProperties_v9_t, netDeviceVersion) == 60);
static_assert(offsetof(ncclNetProperties_v9_t, vProps) == 64);
static_assert(offsetof(ncclNetProperties_v9_t, maxP2pBytes) == 88);
static_assert(offsetof(ncclNetProperties_v9_t, maxCollBytes) == 96);
static_assert(sizeof(ncclNet_v9_t) == 160);
static_assert(offsetof(ncclNet_v9_t, init) == 8);
static_assert(offsetof(ncclNet_v9_t, devices) == 16);
static_assert(offsetof(ncclNet_v9_t, getProperties) == 24);
static_assert(offsetof(ncclNet_v9_t, listen) == 32);
static_assert(offsetof(ncclNet_v9_t, connect) == 40);
static_assert(offsetof(ncclNet_v9_t, accept) == 48);
static_assert(offsetof(ncclNet_v9_t, regMr) == 56);
static_assert(offsetof(ncclNet_v9_t, regMrDmaBuf) == 64);
static_assert(offsetof(ncclNet_v9_t, deregMr) == 72);
static_assert(offsetof(ncclNet_v9_t, isend) == 80);
static_assert(offsetof(ncclNet_v9_t, irecv) == 88);
static_assert(offsetof(ncclNet_v9_t, iflush) == 96);
static_assert(offsetof(ncclNet_v9_t, test) == 104);
static_assert(offsetof(ncclNet_v9_t, closeSend) == 112);
static_assert(offsetof(ncclNet_v9_t, closeRecv) == 120);
static_assert(offsetof(ncclNet_v9_t, closeListen) == 128);
static_assert(offsetof(ncclNet_v9_t, getDeviceMr) == 136);
static_assert(offsetof(ncclNet_v9_t, irecvConsumed) == 144);
static_assert(offsetof(ncclNet_v9_t, makeVDevice) == 152);
