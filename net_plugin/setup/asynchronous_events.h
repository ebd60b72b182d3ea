// Asynchronous events of an open device (ibv_get_async_event(3)): fatal ones end its connections, those after which the
// port may have another GID or speed make it look. A task of the control thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net_plugin/setup/control.h"
#include "net_plugin/setup/event_log.h"
#include "net_plugin/setup/open_device.h"

namespace weft::setup {

class AsynchronousEvents final : public Task {
 public:
  using Log = std::function<void(const std::string&)>;
  // `descriptor`: of the device's events.
  AsynchronousEvents(std::weak_ptr<OpenDevice> device, int descriptor, Log log);

  Wanted wanted() override;
  bool step(short events, TimePoint now) override;

 private:
  std::weak_ptr<OpenDevice> device_;
  FileDescriptor descriptor_;  // our own: the device may be closed while it is watched
  Log log_;
  EventLog told_;
  std::optional<TimePoint> refresh_;  // when the port is asked what has become of it
};

}  // namespace weft::setup
