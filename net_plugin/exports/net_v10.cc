// ncclNetPlugin_v10: a traffic class a connection, and handles of a profiler.
#include "common/nccl_abi/net_v10.h"

#include "net_plugin/exports/entry_points.h"

namespace weft::exports {
namespace {

ncclResult_t init_v10(ncclDebugLogger_t logger, ncclProfilerCallback_t) {
  return init(logger);
}
ncclResult_t connect_v10(int device, ncclNetCommConfig_v10_t* config, void* handle, void** comm,
                         ncclNetDeviceHandle_t**) {
  return connect(nullptr, device, config ? config->trafficClass : -1, handle, comm);
}

}  // namespace
}  // namespace weft::exports

extern "C" __attribute__((visibility("default"))) const ncclNet_v10_t ncclNetPlugin_v10 = {
    weft::exports::kName,
    weft::exports::init_v10,
    weft::exports::devices,
    weft::exports::get_properties<ncclNetProperties_v9_t>,
    weft::exports::listen,
    weft::exports::connect_v10,
    weft::exports::accept_with_device_handle,
    weft::exports::register_memory,
    weft::exports::register_dmabuf,
    weft::exports::deregister_memory,
    weft::exports::isend_profiled,
    weft::exports::irecv_profiled,
    weft::exports::iflush,
    weft::exports::test,
    weft::exports::close_send,
    weft::exports::close_receive,
    weft::exports::close_listen,
    nullptr,
    nullptr,
    weft::exports::make_virtual_device<ncclNetVDeviceProps_v9_t>,
};
