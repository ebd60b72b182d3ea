// `weft figures foundation`: the points that the foundation promises, measured.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/weft/demo/comparison.h"

namespace weft::figures {

// One promise and what was measured. Rules: a ratio passes when its 95 % bound is on the right side and its interval is
// no wider than ±5 %; "not resolved" falls short.
struct Point {
  std::string what;
  std::string goal;
  double measured = 0;
  double low = 0;
  double high = 0;
  std::string verdict;  // "pass", "falls short", "not resolved", "printed only"; "void" where the gate failed
  bool passes() const { return verdict == "pass" || verdict == "printed only"; }
};

// Passes where the lower bound of the figure reaches the goal and the interval decides anything at all.
Point at_least(const std::string& what, double goal, const statistics::Estimate& figure);
// A goal for a figure without an interval.
Point at_least(const std::string& what, double goal, double measured);
// A figure that must not be larger; counted, hence without an interval.
Point at_most(const std::string& what, double goal, double measured);
// A figure without a goal.
Point printed(const std::string& what, double measured);

// Each seed stands for `each` hash seeds: itself, itself + 1000, …
std::vector<std::uint64_t> hash_seeds(const std::vector<std::uint64_t>& seeds, std::size_t each);

struct FigureOptions {
  std::string list;
  std::string seeds;
  std::string json;
  std::string rig;
  bool thorough = false;  // what takes very long as well
};

int run_figures(const FigureOptions& options);

}  // namespace weft::figures
