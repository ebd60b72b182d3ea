// A process of an emulated host.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/runner/scenario.h"

namespace weft::rig {

struct Launch {
  int host = 0;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // added to the runner's own
  std::string log;                                 // file for stdout and stderr
  int input = -1;                                  // descriptor to become stdin; -1: /dev/null
  int output = -1;                                 // descriptor to become stdout; -1: the log
};

Result<pid_t> start_process(const Scenario& scenario, const Launch& launch);

// The exit status of a finished child, 128 + N for signal N; nothing while it runs.
std::optional<int> exit_status(pid_t child);

}  // namespace weft::rig
