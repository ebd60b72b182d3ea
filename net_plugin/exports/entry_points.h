// What the versions of NCCL's interface have in common, as templates over their types: filling in properties, and entry
// points that differ in the type of a size or in arguments that Weft has no use for.
#pragma once

#include <algorithm>
#include <iterator>

#include "net_plugin/exports/plugin.h"

namespace weft::exports {

// Writes every field that the version's structure has: NCCL hands in memory that is not initialised.
template <class Properties>
ncclResult_t get_properties(int device, Properties* out) {
  DeviceProperties known;
  const ncclResult_t result = properties(device, &known);
  *out = {};
  out->name = known.name;
  out->pciPath = known.pci_path;
  out->guid = known.guid;
  out->ptrSupport = known.pointer_support;
  out->speed = known.speed_mbps;
  out->port = known.port;
  out->latency = 0;
  out->maxComms = known.max_connections;
  out->maxRecvs = kMaxReceives;
  // NCCL 2.20 to 2.23 share a registration among all connections of a device where this is set; ours belong to the
  // device.
  if constexpr (requires { out->regIsGlobal; }) out->regIsGlobal = 1;
  if constexpr (requires { out->forceFlush; }) out->forceFlush = 0;
  if constexpr (requires { out->netDeviceType; }) {
    out->netDeviceType = NCCL_NET_DEVICE_HOST;
    out->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
  }
  if constexpr (requires { out->vProps; }) {
    constexpr std::size_t kMost = std::size(decltype(out->vProps.devs){});
    out->vProps.ndevs = int(std::min(known.members.size(), kMost));
    std::copy_n(known.members.begin(), out->vProps.ndevs, out->vProps.devs);
    out->maxP2pBytes = kMaxMessageBytes;
    out->maxCollBytes = kMaxMessageBytes;
  }
  if constexpr (requires { out->maxMultiRequestSize; }) out->maxMultiRequestSize = 1;
  if constexpr (requires { out->railId; }) {
    out->railId = -1;
    out->planeId = -1;
  }
  return result;
}

template <class Members>
ncclResult_t make_virtual_device(int* device, Members* members) {
  if (members->ndevs > int(std::size(members->devs))) return ncclInvalidArgument;
  return merge_devices(members->devs, members->ndevs, device);
}

inline ncclResult_t connect_without_context(int device, void* handle, void** comm, ncclNetDeviceHandle_t**) {
  return connect(nullptr, device, -1, handle, comm);
}
inline ncclResult_t accept_with_device_handle(void* listen_comm, void** comm, ncclNetDeviceHandle_t**) {
  return accept(listen_comm, comm);
}

inline ncclResult_t register_int(void* comm, void* data, int size, int type, void** memory) {
  return register_memory(comm, data, std::size_t(size), type, memory);
}

template <class Size>
ncclResult_t isend(void* comm, void* data, Size size, int tag, void* memory, void** request) {
  return send(comm, data, std::size_t(size), tag, memory, request);
}
template <class Size>
ncclResult_t irecv(void* comm, int n, void** data, Size* sizes, int* tags, void** memory, void** request) {
  return receive<Size>(comm, n, data, sizes, tags, memory, request);
}
// From v10 on there are handles of a profiler plugin, which Weft has no events for.
inline ncclResult_t isend_profiled(void* comm, void* data, std::size_t size, int tag, void* memory, void*,
                                   void** request) {
  return send(comm, data, size, tag, memory, request);
}
inline ncclResult_t irecv_profiled(void* comm, int n, void** data, std::size_t* sizes, int* tags, void** memory, void**,
                                   void** request) {
  return receive<std::size_t>(comm, n, data, sizes, tags, memory, request);
}
inline ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** memory, void** request) {
  return flush(comm, n, data, sizes, memory, request);
}

// A communicator of v11 and later.
struct Context {
  int traffic_class = -1;
};
ncclResult_t init_context(void** context, int traffic_class, ncclDebugLogger_t logger);
ncclResult_t finalize_context(void* context);
ncclResult_t connect_with_context(void* context, int device, void* handle, void** comm, ncclNetDeviceHandle_t**);

}  // namespace weft::exports
