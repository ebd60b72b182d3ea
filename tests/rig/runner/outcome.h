// From the files that the ranks left to a verdict, a JSON result for programs and a table for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/rig/runner/arithmetic.h"
#include "tests/rig/runner/job.h"

namespace weft::rig {

struct Outcome {
  bool pass = false;
  std::string reason;  // of a failure: the first cause
  nlohmann::ordered_json json;
};

Outcome judge(const Scenario& scenario, const RunFolder& folder, const JobEnd& end, fabric::Fabric& fabric,
              const std::vector<fabric::SpineTraffic>& before);

// For people.
std::string table(const Outcome& outcome);

}  // namespace weft::rig
