// ncclNetPlugin_v7: as v6, with handles of offloading devices, which Weft never has.
#include "common/nccl_abi/net_v7.h"

#include "net_plugin/exports/entry_points.h"

extern "C" __attribute__((visibility("default"))) const ncclNet_v7_t ncclNetPlugin_v7 = {
    weft::exports::kName,
    weft::exports::init_merging_cards,
    weft::exports::devices,
    weft::exports::get_properties<ncclNetProperties_v7_t>,
    weft::exports::listen,
    weft::exports::connect_without_context,
    weft::exports::accept_with_device_handle,
    weft::exports::register_int,
    weft::exports::register_dmabuf,
    weft::exports::deregister_memory,
    weft::exports::isend<int>,
    weft::exports::irecv<int>,
    weft::exports::iflush,
    weft::exports::test,
    weft::exports::close_send,
    weft::exports::close_receive,
    weft::exports::close_listen,
    nullptr,
    nullptr,
};
