// ncclNetPlugin_v8: sizes of sends and receives are int, there is no context and no finalize.
#include "common/nccl_abi/net_v8.h"

#include "net_plugin/exports/plugin.h"

namespace weft::exports {
namespace {

ncclResult_t get_properties(int device, ncclNetProperties_v8_t* out) {
  DeviceProperties known;
  const ncclResult_t result = properties(device, &known);
  *out = {};
  out->name = known.name;
  out->pciPath = known.pci_path;
  out->guid = known.guid;
  out->ptrSupport = known.pointer_support;
  out->regIsGlobal = 0;
  out->speed = known.speed_mbps;
  out->port = known.port;
  out->latency = 0;
  out->maxComms = known.max_connections;
  out->maxRecvs = kMaxReceives;
  out->netDeviceType = NCCL_NET_DEVICE_HOST;
  out->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
  return result;
}

ncclResult_t connect_v8(int device, void* handle, void** comm, ncclNetDeviceHandle_t**) {
  return connect(nullptr, device, -1, handle, comm);
}
ncclResult_t accept_v8(void* listen_comm, void** comm, ncclNetDeviceHandle_t**) {
  return accept(listen_comm, comm);
}
ncclResult_t isend(void* comm, void* data, int size, int tag, void* memory, void** request) {
  return send(comm, data, std::size_t(size), tag, memory, request);
}
ncclResult_t irecv(void* comm, int n, void** data, int* sizes, int* tags, void** memory, void** request) {
  return receive<int>(comm, n, data, sizes, tags, memory, request);
}
ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** memory, void** request) {
  return flush(comm, n, data, sizes, memory, request);
}

}  // namespace
}  // namespace weft::exports

extern "C" __attribute__((visibility("default"))) const ncclNet_v8_t ncclNetPlugin_v8 = {
    weft::exports::kName,
    weft::exports::init,
    weft::exports::devices,
    weft::exports::get_properties,
    weft::exports::listen,
    weft::exports::connect_v8,
    weft::exports::accept_v8,
    weft::exports::register_memory,
    weft::exports::register_dmabuf,
    weft::exports::deregister_memory,
    weft::exports::isend,
    weft::exports::irecv,
    weft::exports::iflush,
    weft::exports::test,
    weft::exports::close_send,
    weft::exports::close_receive,
    weft::exports::close_listen,
    nullptr,
    nullptr,
};
