#include "net_plugin/setup/asynchronous_events.h"

#include "common/text/format.h"

namespace weft::setup {
namespace {

// The events after which a queue of the device no longer works. Port events are not among them: a port may come back,
// and until then the queue pairs' own retries decide.
bool is_fatal(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_QP_FATAL:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool AsynchronousEvents::step(short, TimePoint) {
  const std::shared_ptr<OpenDevice> device = device_.lock();
  if (!device) return false;
  ibv_async_event event{};
  // The descriptor is non-blocking: a failure means that there is no event (any more).
  while (device->verbs().get_async_event(device->context(), &event) == 0) {
    const ibv_event_type type = event.event_type;
    log_(text::format("{}: event {}", device->name(), device->verbs().event_type_str(type)));
    device->verbs().ack_async_event(&event);
    if (is_fatal(type)) device->fatal_event.store(int(type) + 1, std::memory_order_relaxed);
  }
  return true;
}

}  // namespace weft::setup
