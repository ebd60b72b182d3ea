// A scripted librdmacm: what it answers to each attempt to resolve an address.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "net_plugin/verbs/connection_manager.h"

namespace weft::fake {

// One attempt. `refused`: errno of rdma_resolve_addr itself. Else the events that come, the first for the address;
// none: silence.
struct Attempt {
  int refused = 0;
  struct Event {
    rdma_cm_event_type type;
    int status = 0;
  };
  std::vector<Event> events;
};

Attempt reached();
Attempt silent_neighbour();

class FakeConnectionManager final : public verbs::ConnectionManager {
 public:
  // The last attempt is repeated.
  explicit FakeConnectionManager(std::deque<Attempt> attempts);
  ~FakeConnectionManager() override;

  bool has_device_node = true;
  std::string served_by = "mlx5_0";

  int attempts_made() const { return made_; }
  std::string last_source, last_destination;  // as text
  // Channels, ids and events that have not been given back.
  int open_objects() const { return open_; }

  rdma_event_channel* create_event_channel() override;
  void destroy_event_channel(rdma_event_channel* channel) override;
  int create_id(rdma_event_channel* channel, rdma_cm_id** id) override;
  int destroy_id(rdma_cm_id* id) override;
  int resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int timeout_ms) override;
  int resolve_route(rdma_cm_id* id, int timeout_ms) override;
  int get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) override;
  int ack_cm_event(rdma_cm_event* event) override;

 private:
  std::deque<Attempt> attempts_;
  std::deque<Attempt::Event> waiting_;
  Attempt current_;
  ibv_device device_{};
  ibv_context context_{};
  int made_ = 0;
  int open_ = 0;
};

}  // namespace weft::fake
