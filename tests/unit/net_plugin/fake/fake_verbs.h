// Verbs without a NIC: devices as a test describes them, and queue pairs of one process that reach each other at once.
// Work is carried out when it is posted (a WRITE copies), or held back and delivered in any order. For unit tests and
// micro-benchmarks.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net_plugin/verbs/verbs.h"

namespace weft::fake {

struct PortDescription {
  ibv_port_state state = IBV_PORT_ACTIVE;
  std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  std::uint16_t lid = 0;
  ibv_mtu mtu = IBV_MTU_4096;
  std::uint8_t active_speed = 32;  // 25 Gbit/s a lane
  std::uint8_t active_width = 2;   // 4 lanes
  std::uint32_t wide_speed = 0;
  std::vector<std::array<std::uint8_t, 16>> gids;
  int query_error = 0;
};

struct DeviceDescription {
  std::string name;
  std::uint64_t guid = 1;
  ibv_transport_type transport = IBV_TRANSPORT_IB;
  std::vector<PortDescription> ports{PortDescription{}};
  int max_qp = 1 << 16;
  int max_qp_wr = 1 << 14;
  int max_srq = 1 << 10;
  int max_srq_wr = 1 << 14;
  std::uint32_t max_inline = 256;
  int queue_pairs_left = 1 << 16;  // of all devices together: the next one fails with ENOMEM
  ibv_ece extensions{};
  int dmabuf_error = EOPNOTSUPP;  // of registering a real descriptor; 0: works
  int gpu_pointer_error = 0;      // of registering the GPU's address without a descriptor
  int open_error = 0;
  int query_error = 0;
};

// ::ffff:a.b.c.d
std::array<std::uint8_t, 16> ipv4_gid(int a, int b, int c, int d);

class FakeVerbs final : public verbs::Verbs {
 public:
  explicit FakeVerbs(std::vector<DeviceDescription> devices);
  ~FakeVerbs() override;

  // From now on work is kept instead of carried out.
  void hold();
  std::size_t held() const;
  // Carries out the held work at this place. Work of one queue pair must be delivered in its order; which() tells the
  // queue pair.
  void deliver(std::size_t place);
  std::uint32_t which(std::size_t place) const;
  // Carries out all that is held, and holds no more.
  void release();
  // The next work that is carried out completes with this status instead; the queue pair is then in the error state.
  void fail_next(ibv_wc_status status);
  // Counts work posted; tests look at how traffic was spread.
  std::map<std::uint32_t, std::size_t> posted_by_queue_pair() const;
  // Work requests of a queue pair that asked for a completion.
  std::size_t reported(std::uint32_t queue_pair) const;
  // What a queue pair has agreed on with its peer (ibv_set_ece(3)); 0: nothing was set.
  std::uint32_t extensions_set(std::uint32_t queue_pair) const;
  // Objects that were made and not destroyed: 0 when all handles are gone.
  int objects() const;
  // A NIC without receive buffers in time reports this many times "receiver not ready": never in a correct transport.
  int receiver_not_ready() const;
  void raise(const std::string& device, ibv_event_type event, int port = 1);
  // From now on the port is like this; raise() tells who listens.
  void set_port(const std::string& device, int port, const PortDescription& description);
  std::vector<ibv_gid> destinations() const;          // of all address vectors so far
  std::vector<std::uint8_t> traffic_classes() const;  // of all address vectors so far

  ibv_device** get_device_list(int* count) override;
  void free_device_list(ibv_device** list) override;
  const char* get_device_name(ibv_device* device) override;
  ibv_context* open_device(ibv_device* device) override;
  int close_device(ibv_context* context) override;
  int query_device(ibv_context* context, ibv_device_attr* attributes) override;
  int query_port(ibv_context* context, std::uint8_t port, verbs::PortAttributes* attributes) override;
  int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) override;
  int get_async_event(ibv_context* context, ibv_async_event* event) override;
  void ack_async_event(ibv_async_event* event) override;
  const char* event_type_str(ibv_event_type type) override;
  const char* wc_status_str(ibv_wc_status status) override;
  ibv_pd* alloc_pd(ibv_context* context) override;
  int dealloc_pd(ibv_pd* pd) override;
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, unsigned access) override;
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                        unsigned access) override;
  int dereg_mr(ibv_mr* mr) override;
  bool has_optional_access() const override { return true; }
  bool has_dmabuf() const override { return true; }
  // Memory from here on, to its end, is a GPU's.
  std::uint64_t gpu_memory = ~std::uint64_t(0);
  int ready_to_receive_error = 0;  // of every queue pair on its way to RTR
  // So much of it can be registered at a time: the next byte is ENOMEM.
  std::size_t gpu_window = ~std::size_t(0);
  ibv_cq* create_cq(ibv_context* context, int entries) override;
  int destroy_cq(ibv_cq* cq) override;
  ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) override;
  int destroy_srq(ibv_srq* srq) override;
  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) override;
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) override;
  int destroy_qp(ibv_qp* qp) override;
  int query_ece(ibv_qp* qp, ibv_ece* ece) override;
  int set_ece(ibv_qp* qp, ibv_ece* ece) override;
  int modify_qp_udp_sport(ibv_qp* qp, std::uint16_t port) override;

 private:
  ibv_mr* make_region(ibv_pd* pd, void* address, std::size_t length, unsigned access);

  struct Nic;
  struct Device;
  std::unique_ptr<Nic> nic_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace weft::fake
