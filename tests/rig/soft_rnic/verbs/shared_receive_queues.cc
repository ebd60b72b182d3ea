// Shared receive queues.
#include <cerrno>
#include <mutex>

#include "tests/rig/soft_rnic/verbs/handles.h"

using weft::soft_rnic::ContextHandle;
using weft::soft_rnic::handle_of;
using weft::soft_rnic::SharedReceiveQueueHandle;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* initial) {
  ContextHandle& context = handle_of(domain->context);
  const std::uint32_t allowed = context.nic->device().capabilities.max_shared_receive_queues;
  if (allowed == 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_srq_attr& attributes = initial->attr;
  if (attributes.max_wr == 0 || attributes.max_wr > weft::soft_rnic::kMaxWorkRequests ||
      attributes.max_sge > weft::soft_rnic::kMaxPieces) {
    errno = EINVAL;
    return nullptr;
  }
  if (context.shared_receive_queues.fetch_add(1) >= allowed) {
    --context.shared_receive_queues;
    errno = ENOMEM;
    return nullptr;
  }
  auto* queue = new SharedReceiveQueueHandle(attributes.max_wr);
  queue->context = domain->context;
  queue->srq_context = initial->srq_context;
  queue->pd = domain;
  queue->max_pieces = attributes.max_sge;
  queue->receives.handle = queue;
  queue->receives.events = &context.events;
  pthread_mutex_init(&queue->mutex, nullptr);
  pthread_cond_init(&queue->cond, nullptr);
  return queue;
}

int ibv_modify_srq(ibv_srq* queue, ibv_srq_attr* attributes, int mask) {
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  SharedReceiveQueueHandle& handle = handle_of(queue);
  const std::lock_guard lock(handle_of(queue->context).nic->mutex());
  if (attributes->srq_limit > handle.receives.queue.capacity()) return EINVAL;
  handle.receives.queue.set_limit(attributes->srq_limit);
  return 0;
}

int ibv_query_srq(ibv_srq* queue, ibv_srq_attr* attributes) {
  SharedReceiveQueueHandle& handle = handle_of(queue);
  const std::lock_guard lock(handle_of(queue->context).nic->mutex());
  attributes->max_wr = static_cast<std::uint32_t>(handle.receives.queue.capacity());
  attributes->max_sge = handle.max_pieces;
  attributes->srq_limit = handle.receives.queue.limit();
  return 0;
}

int ibv_destroy_srq(ibv_srq* queue) {
  ContextHandle& context = handle_of(queue->context);
  {
    const std::lock_guard lock(context.nic->mutex());
    if (context.nic->uses(handle_of(queue).receives)) return EBUSY;
  }
  context.events.remove_if([&](const ibv_async_event& event) {
    return event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == queue;
  });
  --context.shared_receive_queues;
  delete &handle_of(queue);
  return 0;
}

}  // extern "C"
