// NCCL's net interface v6 (the newest of NCCL 2.13 to 2.18). Our own declarations; semantics in
// docs/nccl-interfaces.md. Layout: x86-64.
#pragma once

#include "common/nccl_abi/net_types.h"

extern "C" {

struct ncclNetProperties_v6_t {
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;  // NCCL_PTR_*
  int speed;       // Mbit/s
  int port;
  float latency;  // microseconds
  int maxComms;
  int maxRecvs;
};

struct ncclNet_v6_t {
  const char* name;
  ncclResult_t (*init)(ncclDebugLogger_t logger);
  ncclResult_t (*devices)(int* count);
  ncclResult_t (*getProperties)(int device, ncclNetProperties_v6_t* properties);
  ncclResult_t (*listen)(int device, void* handle, void** listenComm);
  ncclResult_t (*connect)(int device, void* handle, void** sendComm);
  ncclResult_t (*accept)(void* listenComm, void** recvComm);
  ncclResult_t (*regMr)(void* comm, void* data, int size, int type, void** memory);
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
};

}  // extern "C"

static_assert(sizeof(ncclNetProperties_v6_t) == 48);
static_assert(offsetof(ncclNetProperties_v6_t, name) == 0);
static_assert(offsetof(ncclNetProperties_v6_t, pciPath) == 8);
static_assert(offsetof(ncclNetProperties_v6_t, guid) == 16);
static_assert(offsetof(ncclNetProperties_v6_t, ptrSupport) == 24);
static_assert(offsetof(ncclNetProperties_v6_t, speed) == 28);
static_assert(offsetof(ncclNetProperties_v6_t, port) == 32);
static_assert(offsetof(ncclNetProperties_v6_t, latency) == 36);
static_assert(offsetof(ncclNetProperties_v6_t, maxComms) == 40);
static_assert(offsetof(ncclNetProperties_v6_t, maxRecvs) == 44);
static_assert(sizeof(ncclNet_v6_t) == 136);
static_assert(offsetof(ncclNet_v6_t, init) == 8);
static_assert(offsetof(ncclNet_v6_t, devices) == 16);
static_assert(offsetof(ncclNet_v6_t, getProperties) == 24);
static_assert(offsetof(ncclNet_v6_t, listen) == 32);
static_assert(offsetof(ncclNet_v6_t, connect) == 40);
static_assert(offsetof(ncclNet_v6_t, accept) == 48);
static_assert(offsetof(ncclNet_v6_t, regMr) == 56);
static_assert(offsetof(ncclNet_v6_t, regMrDmaBuf) == 64);
static_assert(offsetof(ncclNet_v6_t, deregMr) == 72);
static_assert(offsetof(ncclNet_v6_t, isend) == 80);
static_assert(offsetof(ncclNet_v6_t, irecv) == 88);
static_assert(offsetof(ncclNet_v6_t, iflush) == 96);
static_assert(offsetof(ncclNet_v6_t, test) == 104);
static_assert(offsetof(ncclNet_v6_t, closeSend) == 112);
static_assert(offsetof(ncclNet_v6_t, closeRecv) == 120);
static_assert(offsetof(ncclNet_v6_t, closeListen) == 128);
