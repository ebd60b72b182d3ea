// What is known of a port now, for the connections to come; those that exist keep what they began with (field report
// F12). Lives as long as the process uses the plugin, whether the device is open or not.
//
// Threads: any.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net_plugin/devices/discovery.h"
#include "net_plugin/devices/interfaces.h"

namespace weft::setup {

// Of a connection's devices, in their order.
using PortStates = std::vector<devices::PortState>;

using ListInterfaces = std::function<std::vector<devices::Interface>()>;

class PortWatch {
 public:
  PortWatch(const devices::Port& port, devices::GidWishes wishes, devices::FileTree sysfs, ListInterfaces interfaces);

  devices::PortState now() const;
  // Asks the port again. A line for the log where new connections find something else.
  std::optional<std::string> refresh(verbs::Verbs& verbs, ibv_context* context);

 private:
  const std::string device_;
  const std::uint8_t port_;
  const devices::GidWishes wishes_;
  const devices::FileTree sysfs_;
  const ListInterfaces interfaces_;

  std::mutex refreshing_;
  mutable std::mutex mutex_;  // of what follows
  devices::PortState state_;
};

}  // namespace weft::setup
