// A fabric with its hosts' brokers running: what `rig up` leaves standing and what a job runs on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/fabric/fabric.h"
#include "tests/rig/runner/process.h"
#include "tests/rig/runner/run_folder.h"
#include "tests/rig/runner/scenario.h"

namespace weft::rig {

// Where the build put things: the folder above bin/.
std::string build_folder();

class StandingFabric {
 public:
  static Result<std::unique_ptr<StandingFabric>> create(const Scenario& scenario, const RunFolder& folder);
  ~StandingFabric();

  fabric::Fabric& fabric() { return *fabric_; }

 private:
  StandingFabric() = default;
  Result<void> start_broker(const Scenario& scenario, const RunFolder& folder, int host);

  std::unique_ptr<fabric::Fabric> fabric_;
  std::vector<int> broker_inputs_;  // a broker ends when its input closes
};

}  // namespace weft::rig
