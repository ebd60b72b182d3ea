// What a rank tells the runner, as a JSON file. Form: tests/rig/rank/README.md.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/rank/exchange.h"
#include "tests/rig/rank/pattern.h"
#include "tests/rig/rank/rank_file.h"

namespace weft::rank {

// A call that failed: NCCL's, CUDA's or the rank's own (code 0).
struct Failure {
  std::string call;
  int code = 0;
  std::string name;
  std::string text;
};

struct OperationReport {
  Operation operation;
  std::vector<double> time_us;  // one per timed iteration
  std::size_t wrong = 0;
  std::optional<Mismatch> first_wrong;
  std::vector<double> message_us;  // net_*: of each receive, from its offer to its completion
};

// Threads: may be written from the rank's thread and finished from its watchdog.
class Report {
 public:
  Report(const RankFile& file, Deadline started) : file_(file), started_(started) {}

  void set_version(int code);  // 22907 for 2.29.7
  void set_init_seconds(double seconds);
  // The transport that was driven directly; empty where NCCL chose.
  void set_net(const std::string& name);
  void add(OperationReport operation);
  // The first failure is kept; it is the cause, the others follow from it.
  void fail(Failure failure);
  bool good() const;
  // Writes the result file, once: later calls do nothing.
  Result<void> write();

 private:
  const RankFile& file_;
  Deadline started_;
  mutable std::mutex mutex_;
  std::string version_, net_;
  double init_seconds_ = 0;
  std::vector<OperationReport> operations_;
  std::optional<Failure> failure_;
  double failure_after_s_ = 0;
  bool written_ = false;
};

}  // namespace weft::rank
