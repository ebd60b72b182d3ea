// `rig up`, `rig exec` and `rig down`: a fabric that stays, with a name.
#pragma once

#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/runner/scenario.h"

namespace weft::rig {

// Returns when the fabric is up; it stays until `down` or until the process that holds it is ended.
Result<void> up(const Scenario& scenario, const std::string& scenario_path, const std::vector<std::string>& overrides,
                const std::string& name);
// Runs a command on a host; returns its exit status.
Result<int> execute(const std::string& name, const std::string& host, const std::vector<std::string>& command);
Result<void> down(const std::string& name);

}  // namespace weft::rig
