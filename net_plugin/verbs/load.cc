#include <dlfcn.h>

#include <cerrno>

#include "common/text/format.h"
#include "net_plugin/verbs/shared_object.h"
#include "net_plugin/verbs/verbs.h"

// verbs.h wraps some functions in macros; here the exported ones are meant.
#undef ibv_query_port
#undef ibv_reg_mr

namespace weft::verbs {
namespace {

// Optional access bits have to go through ibv_reg_mr_iova2 (ibv_reg_mr(3), IBV_ACCESS_OPTIONAL_RANGE).
constexpr unsigned kOptionalAccess = 0x3ff00000;

struct Functions {
  ibv_device** (*get_device_list)(int*);
  void (*free_device_list)(ibv_device**);
  const char* (*get_device_name)(ibv_device*);
  ibv_context* (*open_device)(ibv_device*);
  int (*close_device)(ibv_context*);
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*);
  int (*query_gid)(ibv_context*, std::uint8_t, int, ibv_gid*);
  int (*get_async_event)(ibv_context*, ibv_async_event*);
  void (*ack_async_event)(ibv_async_event*);
  const char* (*event_type_str)(ibv_event_type);
  const char* (*wc_status_str)(ibv_wc_status);
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int);
  ibv_mr* (*reg_mr_iova2)(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  int (*dereg_mr)(ibv_mr*);
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int);
  int (*destroy_cq)(ibv_cq*);
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  int (*destroy_srq)(ibv_srq*);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  int (*destroy_qp)(ibv_qp*);
  int (*query_ece)(ibv_qp*, ibv_ece*);
  int (*set_ece)(ibv_qp*, ibv_ece*);
  int (*fork_init)();
  int (*mlx5_modify_udp_sport)(ibv_qp*, std::uint16_t);
  bool (*mlx5_is_supported)(ibv_device*);
};

class Loaded final : public Verbs {
 public:
  Loaded(SharedObject ibverbs, SharedObject mlx5, const Functions& functions)
      : ibverbs_(std::move(ibverbs)), mlx5_(std::move(mlx5)), call_(functions) {}

  ibv_device** get_device_list(int* count) override { return call_.get_device_list(count); }
  void free_device_list(ibv_device** list) override { call_.free_device_list(list); }
  const char* get_device_name(ibv_device* device) override { return call_.get_device_name(device); }
  ibv_context* open_device(ibv_device* device) override { return call_.open_device(device); }
  int close_device(ibv_context* context) override { return call_.close_device(context); }
  int query_device(ibv_context* context, ibv_device_attr* attributes) override {
    return call_.query_device(context, attributes);
  }
  int query_port(ibv_context* context, std::uint8_t port, PortAttributes* attributes) override {
    return verbs::query_port(context, port, attributes, call_.query_port);
  }
  int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) override {
    return call_.query_gid(context, port, index, gid);
  }
  int get_async_event(ibv_context* context, ibv_async_event* event) override {
    return call_.get_async_event(context, event);
  }
  void ack_async_event(ibv_async_event* event) override { call_.ack_async_event(event); }
  const char* event_type_str(ibv_event_type type) override { return call_.event_type_str(type); }
  const char* wc_status_str(ibv_wc_status status) override { return call_.wc_status_str(status); }

  ibv_pd* alloc_pd(ibv_context* context) override { return call_.alloc_pd(context); }
  int dealloc_pd(ibv_pd* pd) override { return call_.dealloc_pd(pd); }
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, unsigned access) override {
    if ((access & kOptionalAccess) != 0 && call_.reg_mr_iova2) {
      return call_.reg_mr_iova2(pd, address, length, reinterpret_cast<std::uintptr_t>(address), access);
    }
    return call_.reg_mr(pd, address, length, int(access & ~kOptionalAccess));
  }
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                        unsigned access) override {
    if (!call_.reg_dmabuf_mr) {
      errno = EOPNOTSUPP;
      return nullptr;
    }
    return call_.reg_dmabuf_mr(pd, offset, length, iova, fd, int(access));
  }
  int dereg_mr(ibv_mr* mr) override { return call_.dereg_mr(mr); }
  bool has_optional_access() const override { return call_.reg_mr_iova2 != nullptr; }
  bool has_dmabuf() const override { return call_.reg_dmabuf_mr != nullptr; }

  ibv_cq* create_cq(ibv_context* context, int entries) override {
    return call_.create_cq(context, entries, nullptr, nullptr, 0);
  }
  int destroy_cq(ibv_cq* cq) override { return call_.destroy_cq(cq); }
  ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) override { return call_.create_srq(pd, attributes); }
  int destroy_srq(ibv_srq* srq) override { return call_.destroy_srq(srq); }
  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) override { return call_.create_qp(pd, attributes); }
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) override {
    return call_.modify_qp(qp, attributes, mask);
  }
  int destroy_qp(ibv_qp* qp) override { return call_.destroy_qp(qp); }
  int query_ece(ibv_qp* qp, ibv_ece* ece) override { return call_.query_ece ? call_.query_ece(qp, ece) : EOPNOTSUPP; }
  int set_ece(ibv_qp* qp, ibv_ece* ece) override { return call_.set_ece ? call_.set_ece(qp, ece) : EOPNOTSUPP; }

  int modify_qp_udp_sport(ibv_qp* qp, std::uint16_t port) override {
    const bool possible =
        call_.mlx5_modify_udp_sport && call_.mlx5_is_supported && call_.mlx5_is_supported(qp->context->device);
    return possible ? call_.mlx5_modify_udp_sport(qp, port) : ENOSYS;
  }

 private:
  SharedObject ibverbs_;
  SharedObject mlx5_;
  Functions call_;
};

}  // namespace

Result<std::unique_ptr<Verbs>> load() {
  SharedObject ibverbs("libibverbs.so.1");
  if (!ibverbs) return Error{text::format("cannot open: {}", dlerror()), "libibverbs.so.1", 0, {}};
  Functions call{};
  Required required(ibverbs, "IBVERBS_1.1");
  required.find(call.get_device_list, "ibv_get_device_list");
  required.find(call.free_device_list, "ibv_free_device_list");
  required.find(call.get_device_name, "ibv_get_device_name");
  required.find(call.open_device, "ibv_open_device");
  required.find(call.close_device, "ibv_close_device");
  required.find(call.query_device, "ibv_query_device");
  required.find(call.query_port, "ibv_query_port");
  required.find(call.query_gid, "ibv_query_gid");
  required.find(call.get_async_event, "ibv_get_async_event");
  required.find(call.ack_async_event, "ibv_ack_async_event");
  required.find(call.event_type_str, "ibv_event_type_str");
  required.find(call.wc_status_str, "ibv_wc_status_str");
  required.find(call.alloc_pd, "ibv_alloc_pd");
  required.find(call.dealloc_pd, "ibv_dealloc_pd");
  required.find(call.reg_mr, "ibv_reg_mr");
  required.find(call.dereg_mr, "ibv_dereg_mr");
  required.find(call.create_cq, "ibv_create_cq");
  required.find(call.destroy_cq, "ibv_destroy_cq");
  required.find(call.create_srq, "ibv_create_srq");
  required.find(call.destroy_srq, "ibv_destroy_srq");
  required.find(call.create_qp, "ibv_create_qp");
  required.find(call.modify_qp, "ibv_modify_qp");
  required.find(call.destroy_qp, "ibv_destroy_qp");
  required.find(call.fork_init, "ibv_fork_init");
  if (required.missing()) {
    return Error{text::format("has no {}@IBVERBS_1.1", required.missing()), "libibverbs.so.1", 0,
                 "install rdma-core's libibverbs"};
  }
  ibverbs.find(call.reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8");
  ibverbs.find(call.query_ece, "ibv_query_ece", "IBVERBS_1.10");
  ibverbs.find(call.set_ece, "ibv_set_ece", "IBVERBS_1.10");
  ibverbs.find(call.reg_dmabuf_mr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12");
  SharedObject mlx5("libmlx5.so.1");
  mlx5.find(call.mlx5_is_supported, "mlx5dv_is_supported", "MLX5_1.8");
  mlx5.find(call.mlx5_modify_udp_sport, "mlx5dv_modify_qp_udp_sport", "MLX5_1.17");
  // Before the first verbs object: a host process that forks (data loaders do) must not take registered pages with it.
  call.fork_init();
  return std::unique_ptr<Verbs>(std::make_unique<Loaded>(std::move(ibverbs), std::move(mlx5), call));
}

}  // namespace weft::verbs
