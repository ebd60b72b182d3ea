// NCCL's own IB transport against Weft on one emulated fabric, over several hash seeds: what runs, what came out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/weft/statistics/statistics.h"
#include "common/result/result.h"

namespace weft::demo {

// A fabric of the demo: a scenario file, and how people call it.
struct FabricChoice {
  std::string name;                        // "1:1", "fat NIC"
  std::string scenario;                    // path
  std::string text;                        // one sentence
  std::vector<std::string> settings = {};  // rig's --set arguments, for both sides
};

// One run of one side.
struct Run {
  std::uint64_t seed = 0;
  double busbw_mbps = 0;               // median over the run's iterations, of the slowest rank
  double share = 0;                    // of what the fabric can carry
  std::vector<double> iteration_mbps;  // bus bandwidth of every timed iteration
  std::vector<double> iteration_shares;
  std::map<std::string, double> spine_bytes;
  double least_used_spine() const;  // bytes over the mean of all spines
};

struct Comparison {
  FabricChoice fabric;
  std::string op;
  std::uint64_t bytes = 0;
  std::vector<Run> ib, weft;  // by seed
};

// Runs one scenario; the result is rig's JSON. `settings`: rig's --set arguments.
using RunScenario =
    std::function<Result<nlohmann::json>(const std::string& scenario, const std::vector<std::string>& settings)>;
using Progress = std::function<void(const std::string& line)>;

// Both sides for each seed, alternately: which one comes first changes from seed to seed.
Result<Comparison> compare(const FabricChoice& fabric, const std::vector<std::uint64_t>& seeds, const RunScenario& run,
                           const Progress& progress);

// Weft's bus bandwidth over the IB transport's on the same seed. Unbounded where runs have a single timed iteration.
statistics::Estimate ratio(const Comparison& comparison);
// The geometric mean over the seeds instead of the median.
statistics::Estimate mean_ratio(const Comparison& comparison);
// Weft's share of what the fabric carries.
statistics::Estimate weft_share(const Comparison& comparison);
statistics::Estimate ib_share(const Comparison& comparison);

std::vector<double> bandwidths(const std::vector<Run>& runs);
std::vector<double> shares(const std::vector<Run>& runs);

// The demo's result for programs.
nlohmann::ordered_json to_json(const std::vector<Comparison>& comparisons, const std::vector<std::uint64_t>& seeds);
// For people.
std::string table(const std::vector<Comparison>& comparisons);

}  // namespace weft::demo
