// One face for every version of NCCL's net interface, so that one test can drive all of them the way NCCL of that
// version does.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/nccl_abi/net_types.h"

namespace weft::versions {

// What a version says of a device; fields that it lacks keep these values.
struct Properties {
  std::string name;
  int pointer_support = 0;
  int reg_is_global = -1;
  int speed = 0;
  int max_receives = 0;
  int members = 1;
  int first_member = 0;
  std::size_t max_p2p_bytes = 1 << 30;
  std::size_t max_coll_bytes = 1 << 30;
  int max_multi_request = 1;
  int rail = -1;
  int plane = -1;
};

class NetInterface {
 public:
  virtual ~NetInterface() = default;
  virtual ncclResult_t init(ncclDebugLogger_t logger) = 0;
  // Does nothing in versions without it.
  virtual ncclResult_t finalize() = 0;
  virtual ncclResult_t devices(int* count) = 0;
  virtual ncclResult_t properties(int device, Properties* out) = 0;
  // makeVDevice; ncclInvalidUsage in versions without it.
  virtual ncclResult_t merge(const std::vector<int>& members, int* device) = 0;
  virtual ncclResult_t listen(int device, void* handle, void** comm) = 0;
  virtual ncclResult_t connect(int device, void* handle, void** comm) = 0;
  virtual ncclResult_t accept(void* listen_comm, void** comm) = 0;
  virtual ncclResult_t register_memory(void* comm, void* data, std::size_t size, int type, void** memory) = 0;
  virtual ncclResult_t deregister(void* comm, void* memory) = 0;
  virtual ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* memory, void** request) = 0;
  virtual ncclResult_t irecv(void* comm, const std::vector<void*>& data, const std::vector<std::size_t>& sizes,
                             const std::vector<int>& tags, const std::vector<void*>& memory, void** request) = 0;
  virtual ncclResult_t iflush(void* comm, void* data, int size, void* memory, void** request) = 0;
  virtual ncclResult_t test(void* request, int* done, int* sizes) = 0;
  virtual ncclResult_t close_send(void* comm) = 0;
  virtual ncclResult_t close_receive(void* comm) = 0;
  virtual ncclResult_t close_listen(void* comm) = 0;
};

// `table`: a symbol ncclNetPlugin_v6 … v12 of a library. Null for an unknown version. `optional_receives`: from v9 on
// receives are marked as NCCL marks those whose completion it can do without.
std::unique_ptr<NetInterface> adapt(int version, const void* table, bool optional_receives = true);

}  // namespace weft::versions
