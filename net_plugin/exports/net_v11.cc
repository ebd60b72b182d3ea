// ncclNetPlugin_v11: a context per communicator, which carries its traffic class.
#include "common/nccl_abi/net_v11.h"

#include "net_plugin/exports/plugin.h"

namespace weft::exports {
namespace {

struct Context {
  int traffic_class = -1;
};

ncclResult_t init_v11(void** context, std::uint64_t, ncclNetCommConfig_v11_t* config, ncclDebugLogger_t logger,
                      ncclProfilerCallback_t) {
  *context = nullptr;
  const ncclResult_t result = init(logger);
  if (result == ncclSuccess) *context = new Context{config ? config->trafficClass : -1};
  return result;
}

// NCCL 2.28.3 to 2.29.3 call it with a null context after a failed init.
ncclResult_t finalize_v11(void* context) {
  if (!context) return ncclSuccess;
  const ncclResult_t result = finalize(context);
  delete static_cast<Context*>(context);
  return result;
}

ncclResult_t get_properties(int device, ncclNetProperties_v11_t* out) {
  DeviceProperties known;
  const ncclResult_t result = properties(device, &known);
  *out = {};
  out->name = known.name;
  out->pciPath = known.pci_path;
  out->guid = known.guid;
  out->ptrSupport = known.pointer_support;
  out->speed = known.speed_mbps;
  out->port = known.port;
  out->maxComms = known.max_connections;
  out->maxRecvs = kMaxReceives;
  out->netDeviceType = NCCL_NET_DEVICE_HOST;
  out->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
  out->vProps.ndevs = 1;
  out->vProps.devs[0] = device;
  out->maxP2pBytes = kMaxMessageBytes;
  out->maxCollBytes = kMaxMessageBytes;
  out->maxMultiRequestSize = 1;
  return result;
}

ncclResult_t listen_v11(void*, int device, void* handle, void** comm) {
  return listen(device, handle, comm);
}
ncclResult_t connect_v11(void* context, int device, void* handle, void** comm, ncclNetDeviceHandle_t**) {
  return connect(context, device, context ? static_cast<Context*>(context)->traffic_class : -1, handle, comm);
}
ncclResult_t accept_v11(void* listen_comm, void** comm, ncclNetDeviceHandle_t**) {
  return accept(listen_comm, comm);
}
ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* memory, void*, void** request) {
  return send(comm, data, size, tag, memory, request);
}
ncclResult_t irecv(void* comm, int n, void** data, std::size_t* sizes, int* tags, void** memory, void**,
                   void** request) {
  return receive<std::size_t>(comm, n, data, sizes, tags, memory, request);
}
ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** memory, void** request) {
  return flush(comm, n, data, sizes, memory, request);
}

}  // namespace
}  // namespace weft::exports

extern "C" __attribute__((visibility("default"))) const ncclNet_v11_t ncclNetPlugin_v11 = {
    weft::exports::kName,
    weft::exports::init_v11,
    weft::exports::devices,
    weft::exports::get_properties,
    weft::exports::listen_v11,
    weft::exports::connect_v11,
    weft::exports::accept_v11,
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
    nullptr,
    weft::exports::finalize_v11,
    nullptr,
};
