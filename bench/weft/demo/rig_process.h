// Calls the rig command, which lies next to this one.
#pragma once

#include <string>
#include <vector>

#include "bench/weft/demo/comparison.h"

namespace weft::demo {

// Folder of this executable.
std::string own_folder();
// A scenario that comes with Weft: in the source tree of this build, or where it was installed.
Result<std::string> find_scenario(const std::string& name);

// `rig`: path of the command. The error has code ENOENT where it can't be started.
RunScenario rig_runner(const std::string& rig);

}  // namespace weft::demo
