// Test data whose result is known without communication. Every element is drawn from a small table of exact values by a
// hash of its place, so that a lost, repeated, misplaced, stale or wrongly reduced element shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/rig/rank/element.h"

namespace weft::rank {

// Values are those of ncclRedOp_t in nccl.h.
enum class Reduction : int { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };

std::optional<Reduction> reduction_from_name(std::string_view name);
std::vector<std::string> reduction_names();

// Element i has the bits table[hash(seed, i) % table.size()]. The table's size is a power of two.
struct Pattern {
  std::vector<std::uint64_t> table;
  std::uint64_t seed = 0;
  double tolerance = 0;  // relative; 0: every bit must be right
};

struct Mismatch {
  std::size_t index = 0;
  double expected = 0;
  double got = 0;
};

struct Check {
  std::size_t wrong = 0;
  std::optional<Mismatch> first;
};

// What one rank puts in before a reduction, and what comes out of it. Both are indexed by the element's place in the
// full buffer and change with the iteration.
Pattern reduction_input(Element element, Reduction reduction, int rank, std::uint64_t iteration);
Pattern reduction_result(Element element, Reduction reduction, int ranks, std::uint64_t iteration);

// What travels unchanged from one rank to another (gather, broadcast, send): indexed from the start of the block.
Pattern transfer(Element element, int from, int to, std::uint64_t iteration);

// Writes elements first … first + count - 1 of the pattern to `out`.
void fill(const Pattern& pattern, Element element, std::size_t first, std::size_t count, void* out);

// Compares `data` with elements first … first + count - 1 of the pattern.
Check check(const Pattern& pattern, Element element, std::size_t first, std::size_t count, const void* data);

}  // namespace weft::rank
