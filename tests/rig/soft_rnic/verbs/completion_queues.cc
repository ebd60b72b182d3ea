// Completion queues and completion channels.
#include <cerrno>

#include "tests/rig/soft_rnic/verbs/handles.h"

using weft::soft_rnic::ChannelHandle;
using weft::soft_rnic::CompletionQueueHandle;
using weft::soft_rnic::handle_of;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* channel = new ChannelHandle();
  channel->context = context;
  channel->fd = channel->events.descriptor();
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  delete &handle_of(channel);
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** queue_context) {
  const auto event = handle_of(channel).events.wait();
  if (!event) return -1;
  *queue = *event;
  *queue_context = (*event)->cq_context;
  return 0;
}

void ibv_ack_cq_events(ibv_cq*, unsigned) {}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* queue_context, ibv_comp_channel* channel, int vector) {
  if (entries < 1 || entries > weft::soft_rnic::kMaxCompletions || vector < 0 || vector >= context->num_comp_vectors) {
    errno = EINVAL;
    return nullptr;
  }
  auto* events = channel != nullptr ? &handle_of(channel).events : nullptr;
  auto* queue = new CompletionQueueHandle(static_cast<std::size_t>(entries), events);
  queue->context = context;
  queue->channel = channel;
  queue->cq_context = queue_context;
  queue->cqe = entries;
  pthread_mutex_init(&queue->mutex, nullptr);
  pthread_cond_init(&queue->cond, nullptr);
  return queue;
}

int ibv_resize_cq(ibv_cq* queue, int entries) {
  if (entries < 1 || entries > weft::soft_rnic::kMaxCompletions) return EINVAL;
  if (!handle_of(queue).queue.resize(static_cast<std::size_t>(entries))) return EINVAL;
  queue->cqe = entries;
  return 0;
}

int ibv_destroy_cq(ibv_cq* queue) {
  CompletionQueueHandle& handle = handle_of(queue);
  if (auto* events = handle.queue.channel()) {
    events->remove_if([&](ibv_cq* event) { return event == queue; });
  }
  delete &handle;
  return 0;
}

}  // extern "C"
