// NCCL's own transports, for programs that drive them through the net interface beside Weft's (tests/rig/rank,
// net_job.h). They are hidden symbols of the archive, so the library that it is linked into shows them by name.
#include <cstring>

extern "C" {

extern const char ncclNetIb[];
extern const char ncclNetSocket[];

// "IB" or "Socket": the table, of the interface version that this NCCL has for its own transports (2.22.3: 8; 2.29.7:
// 11). Null for another name.
__attribute__((visibility("default"))) const void* rig_nccl_transport(const char* name) {
  if (std::strcmp(name, "IB") == 0) return ncclNetIb;
  if (std::strcmp(name, "Socket") == 0) return ncclNetSocket;
  return nullptr;
}

}  // extern "C"
