// librdmacm, found at run time, as far as it resolves addresses: whether and through which device a peer is reached,
// which ibv_modify_qp(3) would find out as well, but while everything else waits.
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>

#include "common/result/result.h"

namespace weft::verbs {

// Names, arguments and results are those of the manual pages (rdma_*(3)): an int result is 0 or -1 with the cause in
// errno, a null pointer leaves the cause in errno. A test stands in for it.
class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;

  virtual rdma_event_channel* create_event_channel() = 0;
  virtual void destroy_event_channel(rdma_event_channel* channel) = 0;
  virtual int create_id(rdma_event_channel* channel, rdma_cm_id** id) = 0;
  virtual int destroy_id(rdma_cm_id* id) = 0;
  virtual int resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int timeout_ms) = 0;
  virtual int resolve_route(rdma_cm_id* id, int timeout_ms) = 0;
  virtual int get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) = 0;
  virtual int ack_cm_event(rdma_cm_event* event) = 0;
};

// Opens librdmacm.so.1. The error says what is missing; nothing but the early resolution depends on it.
Result<std::unique_ptr<ConnectionManager>> load_connection_manager();

}  // namespace weft::verbs
