// One end of some reliable connections, for the small programs and tests of this folder: plain verbs, as an application
// would use them. The two ends find each other through files in a folder that both see.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::soft_rnic {

struct EndpointOptions {
  std::string device;  // empty: the first
  int gid_index = 1;
  std::size_t queue_pairs = 1;
  std::size_t memory_bytes = 1 << 20;
  std::uint32_t queue_depth = 512;
  std::uint32_t shared_receives = 0;  // size of a shared receive queue; 0: each queue pair has its own
  std::uint32_t flow_label = 0;       // of every queue pair
  std::uint8_t traffic_class = 0;
  std::uint8_t timeout = 18;  // 4.096 us x 2^18, about a second
  std::uint8_t retry_count = 7;
};

// Seen by the peer: queue pair numbers and where it may write.
struct EndpointAddress {
  std::string gid;
  std::vector<std::uint32_t> queue_pairs;
  std::uint64_t memory = 0;
  std::uint32_t key = 0;
  int mtu = IBV_MTU_1024;  // enum ibv_mtu
};

template <class T, int (*destroy)(T*)>
struct VerbsDeleter {
  void operator()(T* object) const { destroy(object); }
};
template <class T, int (*destroy)(T*)>
using VerbsHandle = std::unique_ptr<T, VerbsDeleter<T, destroy>>;

class Endpoint {
 public:
  static Result<Endpoint> open(const EndpointOptions& options);

  EndpointAddress address() const;
  // Brings queue pair k up towards the peer's queue pair k.
  Result<void> connect(const EndpointAddress& peer);

  std::uint8_t* memory() { return memory_.data(); }
  const EndpointAddress& peer() const { return peer_; }
  ibv_qp* queue_pair(std::size_t index) { return queue_pairs_[index].get(); }
  ibv_srq* shared_receives() { return shared_receives_.get(); }
  ibv_cq* completions() { return completions_.get(); }
  ibv_context* context() { return context_.get(); }
  ibv_pd* domain() { return domain_.get(); }

  // A signaled WRITE of [offset, offset + length) to the same place at the peer.
  Result<void> post_write(std::size_t queue_pair, std::uint64_t id, std::size_t offset, std::uint32_t length);
  // Any request; `request.sg_list` is made from offset and length.
  Result<void> post(std::size_t queue_pair, ibv_send_wr request, std::size_t offset, std::uint32_t length);
  Result<void> post_receive(std::size_t queue_pair, std::uint64_t id, std::size_t offset, std::uint32_t length);
  // Polls until a completion comes; an Error where none does in time. A failed completion is returned as it is.
  Result<ibv_wc> wait(std::chrono::milliseconds limit);

 private:
  Endpoint() = default;

  EndpointOptions options_;
  EndpointAddress peer_;
  ibv_mtu mtu_ = IBV_MTU_1024;
  std::string gid_;
  std::vector<std::uint8_t> memory_;
  VerbsHandle<ibv_context, ibv_close_device> context_;
  VerbsHandle<ibv_pd, ibv_dealloc_pd> domain_;
  VerbsHandle<ibv_mr, ibv_dereg_mr> region_;
  VerbsHandle<ibv_cq, ibv_destroy_cq> completions_;
  VerbsHandle<ibv_srq, ibv_destroy_srq> shared_receives_;
  std::vector<VerbsHandle<ibv_qp, ibv_destroy_qp>> queue_pairs_;
};

// Publishes `own` as FOLDER/NAME and waits for FOLDER/PEER_NAME.
Result<EndpointAddress> exchange(const std::string& folder, const std::string& name, const std::string& peer_name,
                                 const EndpointAddress& own, std::chrono::milliseconds limit);
// Marks a point in time with a file, and waits for the peer's.
Result<void> announce(const std::string& folder, const std::string& name);
Result<void> await(const std::string& folder, const std::string& name, std::chrono::milliseconds limit);

}  // namespace weft::soft_rnic
