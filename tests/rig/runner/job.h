// Runs the ranks of a scenario on a standing fabric, carries out its faults, watches the time limit.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/runner/standing_fabric.h"

namespace weft::rig {

struct RankEnd {
  int code = -1;  // exit status; 128 + N: signal N
  bool killed_by_fault = false;
  double after_s = 0;  // since the start of the job
};

struct JobEnd {
  std::vector<RankEnd> ranks;
  bool out_of_time = false;
  std::vector<std::size_t> missed_faults;  // of the scenario's: the job ended before their moment
};

class Job {
 public:
  Job(const Scenario& scenario, const RunFolder& folder, fabric::Fabric& fabric);
  Result<JobEnd> run();

  // The environment of a rank, as it is put into the result.
  std::map<std::string, std::string> environment(int rank) const;

 private:
  using Clock = std::chrono::steady_clock;

  Result<void> start_ranks();
  bool reap();
  void tell_the_others(int rank) const;
  Result<void> carry_out_faults();
  Result<void> carry_out(const Fault& fault);
  bool operations_have_started() const;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  const Scenario& scenario_;
  const RunFolder& folder_;
  fabric::Fabric& fabric_;
  Clock::time_point start_;
  std::optional<double> operations_at_s_;
  std::vector<pid_t> children_;
  std::vector<bool> carried_out_;
  std::vector<std::vector<NicState>> nics_;  // by host and rail
  JobEnd end_;
};

}  // namespace weft::rig
