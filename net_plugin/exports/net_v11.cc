// ncclNetPlugin_v11: a context per communicator, which carries its traffic class.
#include "common/nccl_abi/net_v11.h"

#include "net_plugin/exports/entry_points.h"

namespace weft::exports {
namespace {

ncclResult_t init_v11(void** context, std::uint64_t, ncclNetCommConfig_v11_t* config, ncclDebugLogger_t logger,
                      ncclProfilerCallback_t) {
  return init_context(context, config ? config->trafficClass : -1, logger);
}
ncclResult_t listen_v11(void*, int device, void* handle, void** comm) {
  return listen(device, handle, comm);
}

}  // namespace
}  // namespace weft::exports

extern "C" __attribute__((visibility("default"))) const ncclNet_v11_t ncclNetPlugin_v11 = {
    weft::exports::kName,
    weft::exports::init_v11,
    weft::exports::devices,
    weft::exports::get_properties<ncclNetProperties_v11_t>,
    weft::exports::listen_v11,
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
    weft::exports::make_virtual_device<ncclNetVDeviceProps_v11_t>,
    weft::exports::finalize_context,
    nullptr,
};
