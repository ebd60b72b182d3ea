// The rules of a profile that matter for one communicator, laid out for look-up. Pure. A decision depends on the
// profile, the collective, its bytes, the ranks and the nodes and on nothing else, so that all ranks decide alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/profile/profile.h"

namespace weft::tuner {

struct Decision {
  int algorithm = 0;
  int protocol = 0;
  int channels = 0;  // 0: NCCL's own number
};

class DecisionTable {
 public:
  DecisionTable() = default;
  DecisionTable(const profile::Profile& profile, std::uint64_t ranks, std::uint64_t nodes);

  // Null where no rule applies. `collective` is NCCL's number; others than the profile's five find nothing.
  const Decision* find(int collective, std::size_t bytes) const;
  std::size_t size() const;

 private:
  struct Entry {
    std::uint64_t low;
    std::uint64_t high;
    Decision decision;
  };
  static constexpr int kCollectives = 5;
  std::array<std::vector<Entry>, kCollectives> entries_;  // disjoint, by size
};

// Writes a decision into NCCL's cost table (docs/nccl-interfaces.md §4): the chosen cell becomes 0, unless NCCL has
// ruled it out. `table` is a block of algorithms × protocols. Returns whether it was applied.
bool apply(const Decision& decision, float* table, int algorithms, int protocols, int* channels);

}  // namespace weft::tuner
