// Turns a child process into one of an emulated host: its network namespace and a /sys that shows its NICs.
#pragma once

#include "common/result/result.h"
#include "tests/rig/runner/scenario.h"

namespace weft::rig {

// In the child, after fork() and before exec().
Result<void> enter_host(const Scenario& scenario, int host);

}  // namespace weft::rig
