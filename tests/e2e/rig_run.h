// Runs the built rig command on a scenario and reads its result.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weft::e2e {

struct RigRun {
  int code = -1;  // exit status of rig
  nlohmann::json result;
  std::string verdict() const { return result.value("verdict", "none"); }
  std::string reason() const { return result.value("reason", "none"); }
};

// `scenario`: a file of tests/scenarios; `settings`: --set arguments; `label` tells runs of one process apart that go
// on at the same time.
RigRun run_rig(const std::string& scenario, const std::vector<std::string>& settings = {},
               const std::string& label = "only");

}  // namespace weft::e2e
