// Queue pairs: creation, state changes, queries, ECE.
#include <algorithm>
#include <cerrno>
#include <mutex>

#include "tests/rig/soft_rnic/engine/connection.h"
#include "tests/rig/soft_rnic/verbs/handles.h"

using weft::soft_rnic::ContextHandle;
using weft::soft_rnic::handle_of;
using weft::soft_rnic::kMaxPieces;
using weft::soft_rnic::kMaxWorkRequests;
using weft::soft_rnic::QueuePairHandle;
using weft::soft_rnic::QueuePairParts;

namespace {

bool fits(const ibv_qp_cap& wanted, std::uint32_t max_inline) {
  return wanted.max_send_wr <= kMaxWorkRequests && wanted.max_recv_wr <= kMaxWorkRequests &&
         wanted.max_send_sge <= kMaxPieces && wanted.max_recv_sge <= kMaxPieces && wanted.max_inline_data <= max_inline;
}

bool of_queue_pair(const ibv_async_event& event, const ibv_qp* queue_pair) {
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return event.element.qp == queue_pair;
    default:
      return false;
  }
}

}  // namespace

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* initial) {
  ContextHandle& context = handle_of(domain->context);
  if (initial->qp_type != IBV_QPT_RC) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const std::uint32_t max_inline = context.nic->device().capabilities.max_inline;
  if (initial->send_cq == nullptr || initial->recv_cq == nullptr || !fits(initial->cap, max_inline)) {
    errno = EINVAL;
    return nullptr;
  }
  // More than was asked for, as real devices round up. NCCL relies on it: it asks for one clear-to-send entry of inline
  // room and then sends up to eight inline.
  initial->cap.max_inline_data = max_inline;

  auto* handle = new QueuePairHandle();
  handle->initial = *initial;
  QueuePairParts parts;
  parts.handle = handle;
  parts.protection_domain = domain;
  parts.send_completions = &handle_of(initial->send_cq).queue;
  parts.receive_completions = &handle_of(initial->recv_cq).queue;
  parts.shared_receives = initial->srq != nullptr ? &handle_of(initial->srq).receives : nullptr;
  parts.events = &context.events;
  parts.capabilities = initial->cap;
  parts.signal_all = initial->sq_sig_all != 0;
  {
    const std::lock_guard lock(context.nic->mutex());
    auto engine = context.nic->create_queue_pair(parts);
    if (!engine) {
      errno = engine.error().code;
      delete handle;
      return nullptr;
    }
    handle->engine = *engine;
  }
  handle->context = domain->context;
  handle->qp_context = initial->qp_context;
  handle->pd = domain;
  handle->send_cq = initial->send_cq;
  handle->recv_cq = initial->recv_cq;
  handle->srq = initial->srq;
  handle->handle = handle->qp_num = handle->engine->number();
  handle->state = IBV_QPS_RESET;
  handle->qp_type = initial->qp_type;
  pthread_mutex_init(&handle->mutex, nullptr);
  pthread_cond_init(&handle->cond, nullptr);
  return handle;
}

int ibv_destroy_qp(ibv_qp* queue_pair) {
  QueuePairHandle& handle = handle_of(queue_pair);
  ContextHandle& context = handle_of(queue_pair->context);
  {
    const std::lock_guard lock(context.nic->mutex());
    context.nic->destroy_queue_pair(*handle.engine);
  }
  context.events.remove_if([&](const ibv_async_event& event) { return of_queue_pair(event, queue_pair); });
  delete &handle;
  return 0;
}

int ibv_modify_qp(ibv_qp* queue_pair, ibv_qp_attr* attributes, int mask) {
  QueuePairHandle& handle = handle_of(queue_pair);
  auto& nic = *handle_of(queue_pair->context).nic;
  const std::lock_guard lock(nic.mutex());
  const int failed = weft::soft_rnic::modify(nic, *handle.engine, *attributes, mask);
  queue_pair->state = handle.engine->state();
  return failed;
}

int ibv_query_qp(ibv_qp* queue_pair, ibv_qp_attr* attributes, int, ibv_qp_init_attr* initial) {
  QueuePairHandle& handle = handle_of(queue_pair);
  const std::lock_guard lock(handle_of(queue_pair->context).nic->mutex());
  *attributes = handle.engine->attributes();
  attributes->qp_state = attributes->cur_qp_state = handle.engine->state();
  attributes->cap = handle.initial.cap;
  attributes->sq_draining = handle.engine->state() == IBV_QPS_SQD && !handle.engine->requester().drained();
  queue_pair->state = handle.engine->state();
  if (initial != nullptr) *initial = handle.initial;
  return 0;
}

// Enhanced connection establishment: no vendor options, so zeros where the device answers at all.
int ibv_query_ece(ibv_qp* queue_pair, ibv_ece* ece) {
  if (!handle_of(queue_pair->context).nic->device().capabilities.ece) return EOPNOTSUPP;
  *ece = {};
  return 0;
}

int ibv_set_ece(ibv_qp* queue_pair, ibv_ece*) {
  return handle_of(queue_pair->context).nic->device().capabilities.ece ? 0 : EOPNOTSUPP;
}

// Extended work requests (ibv_wr_*) are not offered.
ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp*) {
  return nullptr;
}

// Payload of a message is placed in order, but not byte by byte: "no", the answer that promises nothing.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) {
  return 0;
}

// For libmlx5 (mlx5/mlx5.cc): moves a queue pair that is ready to send to another UDP source port.
int soft_rnic_modify_source_port(ibv_qp* queue_pair, uint16_t source_port) {
  auto& nic = *handle_of(queue_pair->context).nic;
  if (!nic.device().capabilities.modify_udp_sport) return EOPNOTSUPP;
  weft::soft_rnic::QueuePair& engine = *handle_of(queue_pair).engine;
  const std::lock_guard lock(nic.mutex());
  if (engine.state() != IBV_QPS_RTS) return EINVAL;
  auto moved = nic.set_source_port(engine, source_port);
  if (!moved) return moved.error().code;
  nic.settle(engine);
  return 0;
}

}  // extern "C"
