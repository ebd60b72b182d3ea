#include "net_plugin/setup/port_watch.h"

#include "common/text/format.h"

namespace weft::setup {

PortWatch::PortWatch(const devices::Port& port, devices::GidWishes wishes, devices::FileTree sysfs,
                     ListInterfaces interfaces)
    : device_(port.device),
      port_(port.port),
      wishes_(std::move(wishes)),
      sysfs_(std::move(sysfs)),
      interfaces_(std::move(interfaces)),
      state_(static_cast<const devices::PortState&>(port)) {
  state_.prefix_length = devices::prefix_length(interfaces_(), state_.gid);
}

devices::PortState PortWatch::now() const {
  std::lock_guard lock(mutex_);
  return state_;
}

std::optional<std::string> PortWatch::refresh(verbs::Verbs& verbs, ibv_context* context) {
  std::lock_guard one_at_a_time(refreshing_);
  verbs::PortAttributes attributes{};
  // A link that is down may come back as it was, and then there is an event.
  if (verbs.query_port(context, port_, &attributes) != 0 || attributes.state != IBV_PORT_ACTIVE) return std::nullopt;
  std::vector<std::string> said_before;
  devices::PortState found =
      devices::port_state(verbs, context, attributes, devices::Sysfs(sysfs_, device_), port_, wishes_, said_before);
  found.prefix_length = devices::prefix_length(interfaces_(), found.gid);
  std::lock_guard lock(mutex_);
  const auto line = devices::describe_change(text::format("{}:{}", device_, port_), state_, found);
  state_ = std::move(found);
  return line;
}

}  // namespace weft::setup
