// The tuning profile: which algorithm, protocol and number of channels for which collective and size. A JSON file, read
// strictly; docs/tuner.md describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::profile {

// Values are NCCL's (docs/nccl-interfaces.md §4).
enum class Collective : int { broadcast = 0, reduce = 1, all_gather = 2, reduce_scatter = 3, all_reduce = 4 };
enum class Algorithm : int {
  tree = 0,
  ring = 1,
  collnet_direct = 2,
  collnet_chain = 3,
  nvls = 4,
  nvls_tree = 5,
  pat = 6
};
enum class Protocol : int { ll = 0, ll128 = 1, simple = 2 };

// Inclusive.
struct Interval {
  std::uint64_t low = 0;
  std::uint64_t high = UINT64_MAX;
  bool contains(std::uint64_t value) const { return value >= low && value <= high; }
  bool meets(const Interval& other) const { return low <= other.high && other.low <= high; }
};

struct Rule {
  Collective collective = Collective::all_reduce;
  Interval bytes;  // of the full buffer, as NCCL counts them
  Interval ranks;
  Interval nodes;
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  int channels = 0;  // 0: NCCL's own number
  std::string name;  // its place in the file: "rules[2]"
};

struct Profile {
  std::string path;
  std::string digest;  // SHA-256 of the file
  std::string description;
  std::vector<Rule> rules;
};

Result<Profile> read_profile(const std::string& path);
Result<Profile> parse_profile(const std::string& text, const std::string& path);

const char* name(Collective collective);
const char* name(Algorithm algorithm);
const char* name(Protocol protocol);

}  // namespace weft::profile
