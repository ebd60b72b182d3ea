// `weft devices`: the NIC ports that the net plugin would offer to NCCL on this host, and why others are left out. The
// same code as in the plugin, with the same settings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net_plugin/devices/discovery.h"

namespace weft::devices_command {

// What there is to tell.
struct Report {
  std::vector<devices::Port> ports;
  std::vector<std::string> remarks;   // one line for each port left out, and surprises of the selection
  std::optional<Error> trouble;       // makes every connection fail
  std::vector<std::string> warnings;  // of the settings

  bool any_usable() const;
};

std::string table(const Report& report);
nlohmann::ordered_json to_json(const Report& report);

// Exit code 0: at least one port can be used; 1: none can, or a setting is wrong; 2: `json` can't be written.
int run(const std::string& json);

}  // namespace weft::devices_command
