#include "net_plugin/exports/entry_points.h"

namespace weft::exports {

ncclResult_t init_context(void** context, int traffic_class, ncclDebugLogger_t logger) {
  *context = nullptr;
  const ncclResult_t result = init(logger);
  if (result == ncclSuccess) *context = new Context{traffic_class};
  return result;
}

// NCCL 2.28.3 to 2.29.3 call it with a null context after a failed init.
ncclResult_t finalize_context(void* context) {
  if (!context) return ncclSuccess;
  const ncclResult_t result = finalize(context);
  delete static_cast<Context*>(context);
  return result;
}

ncclResult_t connect_with_context(void* context, int device, void* handle, void** comm, ncclNetDeviceHandle_t**) {
  return connect(context, device, context ? static_cast<Context*>(context)->traffic_class : -1, handle, comm);
}

}  // namespace weft::exports
