// libibverbs and the vendor calls, found at run time. Everything that creates, changes or destroys goes through this
// class, so that a test can stand in for it; the data path (ibv_poll_cq, ibv_post_send, ibv_post_recv,
// ibv_post_srq_recv) goes through the function table of the context, as rdma-core's inline functions do.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/result/result.h"
#include "net_plugin/verbs/port_attributes.h"

namespace weft::verbs {

// Names, arguments and results are those of the manual pages (ibv_*(3)): an int result is 0 or an errno, a null pointer
// leaves the cause in errno. Calls are thread-safe where libibverbs is.
class Verbs {
 public:
  virtual ~Verbs() = default;

  virtual ibv_device** get_device_list(int* count) = 0;
  virtual void free_device_list(ibv_device** list) = 0;
  virtual const char* get_device_name(ibv_device* device) = 0;
  virtual ibv_context* open_device(ibv_device* device) = 0;
  virtual int close_device(ibv_context* context) = 0;
  virtual int query_device(ibv_context* context, ibv_device_attr* attributes) = 0;
  virtual int query_port(ibv_context* context, std::uint8_t port, PortAttributes* attributes) = 0;
  virtual int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) = 0;
  virtual int get_async_event(ibv_context* context, ibv_async_event* event) = 0;
  virtual void ack_async_event(ibv_async_event* event) = 0;
  virtual const char* event_type_str(ibv_event_type type) = 0;
  virtual const char* wc_status_str(ibv_wc_status status) = 0;

  virtual ibv_pd* alloc_pd(ibv_context* context) = 0;
  virtual int dealloc_pd(ibv_pd* pd) = 0;
  // Uses ibv_reg_mr_iova2 where `access` has optional bits (relaxed ordering); see has_optional_access().
  virtual ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, unsigned access) = 0;
  virtual ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                                unsigned access) = 0;
  virtual int dereg_mr(ibv_mr* mr) = 0;
  virtual bool has_optional_access() const = 0;
  virtual bool has_dmabuf() const = 0;

  virtual ibv_cq* create_cq(ibv_context* context, int entries) = 0;
  virtual int destroy_cq(ibv_cq* cq) = 0;
  virtual ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) = 0;
  virtual int destroy_srq(ibv_srq* srq) = 0;
  virtual ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) = 0;
  virtual int modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) = 0;
  virtual int destroy_qp(ibv_qp* qp) = 0;
  // EOPNOTSUPP where libibverbs has no such call.
  virtual int query_ece(ibv_qp* qp, ibv_ece* ece) = 0;
  virtual int set_ece(ibv_qp* qp, ibv_ece* ece) = 0;

  // mlx5dv_modify_qp_udp_sport: moves a queue pair in RTS to another UDP source port. ENOSYS where libmlx5 or the call
  // is missing, what the vendor's library says otherwise.
  virtual int modify_qp_udp_sport(ibv_qp* qp, std::uint16_t port) = 0;
};

// Opens libibverbs.so.1 (and libmlx5.so.1 where it is there). The error says which library or symbol is missing: on a
// host without RDMA that is normal and means "no devices".
Result<std::unique_ptr<Verbs>> load();

}  // namespace weft::verbs
