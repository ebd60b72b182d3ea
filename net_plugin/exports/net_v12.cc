// ncclNetPlugin_v12: as v11, with up to eight devices merged, rail and plane.
#include "common/nccl_abi/net_v12.h"

#include "net_plugin/exports/entry_points.h"

namespace weft::exports {
namespace {

ncclResult_t init_v12(void** context, std::uint64_t, ncclNetCommConfig_v12_t* config, ncclDebugLogger_t logger,
                      ncclProfilerCallback_t) {
  return init_context(context, config ? config->trafficClass : -1, logger);
}
ncclResult_t listen_v12(void*, int device, void* handle, void** comm) {
  return listen(device, handle, comm);
}

}  // namespace
}  // namespace weft::exports

extern "C" __attribute__((visibility("default"))) const ncclNet_v12_t ncclNetPlugin_v12 = {
    weft::exports::kName,
    weft::exports::init_v12,
    weft::exports::devices,
    weft::exports::get_properties<ncclNetProperties_v12_t>,
    weft::exports::listen_v12,
    weft::exports::connect_with_context,
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
    weft::exports::make_virtual_device<ncclNetVDeviceProps_v12_t>,
    weft::exports::finalize_context,
    nullptr,
};
