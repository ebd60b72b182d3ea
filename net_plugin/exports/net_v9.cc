// ncclNetPlugin_v9: sizes are size_t; devices may be merged.
#include "common/nccl_abi/net_v9.h"

#include "net_plugin/exports/entry_points.h"

extern "C" __attribute__((visibility("default"))) const ncclNet_v9_t ncclNetPlugin_v9 = {
    weft::exports::kName,
    weft::exports::init,
    weft::exports::devices,
    weft::exports::get_properties<ncclNetProperties_v9_t>,
    weft::exports::listen,
    weft::exports::connect_without_context,
    weft::exports::accept_with_device_handle,
    weft::exports::register_memory,
    weft::exports::register_dmabuf,
    weft::exports::deregister_memory,
    weft::exports::isend<std::size_t>,
    weft::exports::irecv<std::size_t>,
    weft::exports::iflush,
    weft::exports::test,
    weft::exports::close_send,
    weft::exports::close_receive,
    weft::exports::close_listen,
    nullptr,
    nullptr,
    weft::exports::make_virtual_device<ncclNetVDeviceProps_v9_t>,
};
