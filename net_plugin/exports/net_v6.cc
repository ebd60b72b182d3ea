// ncclNetPlugin_v6: sizes are int, also of registrations; no device handles.
#include "common/nccl_abi/net_v6.h"

#include "net_plugin/exports/entry_points.h"

namespace weft::exports {
namespace {

ncclResult_t connect_v6(int device, void* handle, void** comm) {
  return connect(nullptr, device, -1, handle, comm);
}

}  // namespace
}  // namespace weft::exports

extern "C" __attribute__((visibility("default"))) const ncclNet_v6_t ncclNetPlugin_v6 = {
    weft::exports::kName,           weft::exports::init_merging_cards,
    weft::exports::devices,         weft::exports::get_properties<ncclNetProperties_v6_t>,
    weft::exports::listen,          weft::exports::connect_v6,
    weft::exports::accept,          weft::exports::register_int,
    weft::exports::register_dmabuf, weft::exports::deregister_memory,
    weft::exports::isend<int>,      weft::exports::irecv<int>,
    weft::exports::iflush,          weft::exports::test,
    weft::exports::close_send,      weft::exports::close_receive,
    weft::exports::close_listen,
};
