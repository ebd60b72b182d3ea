#include "net_plugin/setup/asynchronous_events.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>

#include "common/text/format.h"

namespace weft::setup {
namespace {

constexpr std::chrono::seconds kLookInterval{1};

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

// Events that name a port (ibv_get_async_event(3)): those of another port of the same device are not ours (F65).
bool names_port(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return true;
    default:
      return false;
  }
}

bool changes_port(ibv_event_type type) {
  return type == IBV_EVENT_GID_CHANGE || type == IBV_EVENT_PORT_ACTIVE;
}

// Several entries change one after the other, and a link that flaps makes thousands of events.
constexpr std::chrono::milliseconds kSettle{50};

}  // namespace

AsynchronousEvents::AsynchronousEvents(std::weak_ptr<OpenDevice> device, int descriptor, Log log)
    : device_(std::move(device)), descriptor_(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)), log_(std::move(log)) {}

Task::Wanted AsynchronousEvents::wanted() {
  // Nothing tells that the device has been closed.
  TimePoint wake = std::chrono::steady_clock::now() + kLookInterval;
  for (const std::optional<TimePoint>& other : {told_.wake(), refresh_})
    wake = std::min(wake, other.value_or(wake));
  return {descriptor_.get(), POLLIN, wake};
}

bool AsynchronousEvents::step(short, TimePoint now) {
  const std::shared_ptr<OpenDevice> device = device_.lock();
  if (!device) return false;
  ibv_async_event event{};
  // The descriptor is non-blocking: a failure means that there is no event (any more).
  while (device->verbs().get_async_event(device->context(), &event) == 0) {
    const ibv_event_type type = event.event_type;
    const bool ours = !names_port(type) || event.element.port_num == device->port().port;
    device->verbs().ack_async_event(&event);
    if (!ours) continue;
    const std::string line = text::format("{}: event {}", device->name(), device->verbs().event_type_str(type));
    if (const auto told = told_.note(line, now)) log_(*told);
    if (changes_port(type) && !refresh_) refresh_ = now + kSettle;
    if (is_fatal(type)) device->set_fatal_event(type);
  }
  if (refresh_ && *refresh_ <= now) {
    refresh_.reset();
    if (const auto line = device->refresh()) log_(*line);
  }
  for (const std::string& line : told_.due(now))
    log_(line);
  return true;
}

}  // namespace weft::setup
