// `weft devices`: the NIC ports that the net plugin would offer to NCCL on this host, and why others are left out. The
// same code as in the plugin, with the same settings.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/weft/devices/look.h"

namespace weft::devices_command {

std::string table(const Report& report);
nlohmann::ordered_json to_json(const Report& report);

struct Options {
  std::string json;                      // file for programs, "-" standard output; empty: none
  std::optional<std::string> save_tree;  // file for the tar archive
};

// Exit code 0: at least one port can be used; 1: none can, or a setting is wrong; 2: a file can't be read or written.
// With `save_tree` 0: it was written, whatever can be used; 1: the tree would not give the same choice, or there was
// no room for it; 2: it can't be made, or is there already.
int run(const Options& options);

}  // namespace weft::devices_command
