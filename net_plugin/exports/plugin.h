// The one internal interface behind every version of NCCL's net interface. The files net_v*.cc translate types and
// arguments, nothing else. Errors become one log line and a result code here, and only here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/nccl_abi/net_types.h"

namespace weft::exports {

// What a version tells NCCL of a device; strings live as long as the plugin.
struct DeviceProperties {
  char* name = nullptr;
  char* pci_path = nullptr;  // null: none
  std::uint64_t guid = 0;
  int pointer_support = NCCL_PTR_HOST;
  int speed_mbps = 0;
  int port = 1;
  int max_connections = 0;
  std::vector<int> members;  // indices of the physical devices that it is made of; its own where it is one
};

inline constexpr const char* kName = "Weft";
// Receives of one request, as NCCL's own IB transport offers.
inline constexpr int kMaxReceives = 8;
inline constexpr std::size_t kMaxMessageBytes = std::size_t(1) << 30;

ncclResult_t init(ncclDebugLogger_t logger);
// For versions of NCCL that don't merge devices themselves.
ncclResult_t init_merging_cards(ncclDebugLogger_t logger);
// `context`: what was given to connect(), or null.
ncclResult_t finalize(const void* context);
ncclResult_t devices(int* count);
ncclResult_t properties(int device, DeviceProperties* out);
// Several devices as one; *device: its index.
ncclResult_t merge_devices(const int* members, int count, int* device);

ncclResult_t listen(int device, void* handle, void** listen_comm);
ncclResult_t connect(const void* context, int device, int traffic_class, void* handle, void** send_comm);
ncclResult_t accept(void* listen_comm, void** receive_comm);
ncclResult_t close_send(void* send_comm);
ncclResult_t close_receive(void* receive_comm);
ncclResult_t close_listen(void* listen_comm);

ncclResult_t register_memory(void* comm, void* data, std::size_t size, int type, void** memory);
ncclResult_t register_dmabuf(void* comm, void* data, std::size_t size, int type, std::uint64_t offset, int fd,
                             void** memory);
ncclResult_t deregister_memory(void* comm, void* memory);

// The hot path.
ncclResult_t send(void* send_comm, void* data, std::size_t size, int tag, void* memory, void** request);
template <class Size>
ncclResult_t receive(void* receive_comm, int count, void** data, const Size* sizes, const int* tags, void** memory,
                     void** request);
ncclResult_t flush(void* receive_comm, int count, void** data, const int* sizes, void** memory, void** request);
ncclResult_t test(void* request, int* done, int* sizes);

extern template ncclResult_t receive<int>(void*, int, void**, const int*, const int*, void**, void**);
extern template ncclResult_t receive<std::size_t>(void*, int, void**, const std::size_t*, const int*, void**, void**);

}  // namespace weft::exports
