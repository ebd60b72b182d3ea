// The search for devices as the plugin makes it, on this host or on one that was recorded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/settings/settings.h"
#include "net_plugin/devices/discovery.h"
#include "net_plugin/verbs/verbs.h"

namespace weft::devices_command {

// What there is to tell.
struct Report {
  std::vector<devices::Port> ports;
  std::vector<std::string> remarks;   // one line for each port left out, and surprises of the selection
  std::optional<Error> trouble;       // makes every connection fail
  std::vector<std::string> warnings;  // of the settings

  bool any_usable() const;
};

// Where is looked.
struct Host {
  settings::Loaded loaded;
  Result<std::unique_ptr<verbs::Verbs>> verbs;
  std::string sysfs;  // the folder that is its /sys
};

// This host; with WEFT_SYSFS_ROOT the files of another, and where `weft devices --save-tree` made that folder, the
// settings (unless the environment has others) and the answers of libibverbs that it recorded.
Result<Host> open_host();

// Paths of PCI functions are told as they are on the host itself, below /sys. Nothing is said of the settings but
// what makes every connection fail.
Report look(Host host, devices::FileTree::Observer observer = {});

}  // namespace weft::devices_command
