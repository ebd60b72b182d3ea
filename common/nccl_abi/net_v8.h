// NCCL's net interface v8 (NCCL 2.20 to 2.23 take it as their newest). Our own declarations; semantics in
// docs/nccl-interfaces.md. Layout: x86-64.
#pragma once

#include "common/nccl_abi/net_types.h"

extern "C" {

struct ncclNetProperties_v8_t {
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;  // NCCL_PTR_*
  int regIsGlobal;
  int speed;  // Mbit/s
  int port;
  float latency;  // microseconds
  int maxComms;
  int maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
};

struct ncclNet_v8_t {
  const char* name;
  ncclResult_t (*init)(ncclDebugLogger_t logger);
  ncclResult_t (*devices)(int* count);
  ncclResult_t (*getProperties)(int device, ncclNetProperties_v8_t* properties);
  ncclResult_t (*listen)(int device, void* handle, void** listenComm);
  ncclResult_t (*connect)(int device, void* handle, void** sendComm, ncclNetDeviceHandle_t** deviceHandle);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_t** deviceHandle);
  ncclResult_t (*regMr)(void* comm, void* data, std::size_t size, int type, void** memory);
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, std::size_t size, int type, std::uint64_t offset, int fd,
                              void** memory);
  ncclResult_t (*deregMr)(void* comm, void* memory);
  ncclResult_t (*isend)(void* sendComm, void* data, int size, int tag, void* memory, void** request);
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, int* sizes, int* tags, void** memory, void** request);
  ncclResult_t (*iflush)(void* recvComm, int n, void** data, int* sizes, void** memory, void** request);
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  ncclResult_t (*closeSend)(void* sendComm);
  ncclResult_t (*closeRecv)(void* recvComm);
  ncclResult_t (*closeListen)(void* listenComm);
  ncclResult_t (*getDeviceMr)(void* comm, void* memory, void** deviceMemory);
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);
};

}  // extern "C"

static_assert(sizeof(ncclNetProperties_v8_t) == 64);
static_assert(offsetof(ncclNetProperties_v8_t, ptrSupport) == 24);
static_assert(offsetof(ncclNetProperties_v8_t, regIsGlobal) == 28);
static_assert(offsetof(ncclNetProperties_v8_t, speed) == 32);
static_assert(offsetof(ncclNetProperties_v8_t, port) == 36);
static_assert(offsetof(ncclNetProperties_v8_t, latency) == 40);
static_assert(offsetof(ncclNetProperties_v8_t, maxComms) == 44);
static_assert(offsetof(ncclNetProperties_v8_t, maxRecvs) == 48);
static_assert(offsetof(ncclNetProperties_v8_t, netDeviceType) == 52);
static_assert(offsetof(ncclNetProperties_v8_t, netDeviceVersion) == 56);
static_assert(sizeof(ncclNet_v8_t) == 152);
static_assert(offsetof(ncclNet_v8_t, regMr) == 56);
static_assert(offsetof(ncclNet_v8_t, isend) == 80);
static_assert(offsetof(ncclNet_v8_t, test) == 104);
static_assert(offsetof(ncclNet_v8_t, irecvConsumed) == 144);
