#include "tests/rig/rank/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace weft::rank {
namespace {

constexpr const char* kReductions[] = {"sum", "prod", "max", "min", "avg"};

// The finaliser of SplitMix64: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

// Rank r adds offset(r) to the common part 0 … 3 of a sum, minimum, maximum or average; small, so that sums over many
// ranks stay exact in bf16 (integers up to 256).
int offset(int rank) {
  return rank * 5 % 7;
}
constexpr int kCommonParts = 4;
// A product has the factor 2 where bit (rank % 8) of the common part is set and 1 elsewhere.
constexpr int kProductParts = 256;

double factor(int part, int rank) {
  return part >> (rank % 8) & 1 ? 2 : 1;
}

double reduced(Element element, Reduction reduction, int part, int ranks) {
  double sum = 0, product = 1, smallest = part + offset(0), largest = smallest;
  for (int rank = 0; rank < ranks; rank++) {
    const double value = part + offset(rank);
    sum += value;
    product *= factor(part, rank);
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  switch (reduction) {
    case Reduction::sum:
      return sum;
    case Reduction::prod:
      return product;
    case Reduction::max:
      return largest;
    case Reduction::min:
      return smallest;
    case Reduction::avg:
      return is_floating(element) ? sum / ranks : std::trunc(sum / ranks);
  }
  return 0;
}

int parts(Reduction reduction) {
  return reduction == Reduction::prod ? kProductParts : kCommonParts;
}

// One unit in the last place of the type's fraction, for each of the roundings that an average goes through.
double average_tolerance(Element element, int ranks) {
  return (ranks + 1) * 2.0 / double(largest_exact(element));
}

template <class Word>
void fill_words(const Pattern& pattern, std::size_t first, std::size_t count, void* out) {
  auto* words = static_cast<Word*>(out);
  const std::uint64_t mask = pattern.table.size() - 1;
  for (std::size_t i = 0; i < count; i++)
    words[i] = Word(pattern.table[mix(pattern.seed ^ (first + i)) & mask]);
}

template <class Word>
Check check_words(const Pattern& pattern, Element element, std::size_t first, std::size_t count, const void* data) {
  const auto* words = static_cast<const Word*>(data);
  const std::uint64_t mask = pattern.table.size() - 1;
  Check result;
  for (std::size_t i = 0; i < count; i++) {
    const Word expected = Word(pattern.table[mix(pattern.seed ^ (first + i)) & mask]);
    if (words[i] == expected) continue;
    const double want = decode(element, expected), got = decode(element, words[i]);
    if (pattern.tolerance > 0 && std::fabs(got - want) <= pattern.tolerance * std::fabs(want)) continue;
    if (!result.first) result.first = Mismatch{first + i, want, got};
    result.wrong++;
  }
  return result;
}

}  // namespace

std::optional<Reduction> reduction_from_name(std::string_view name) {
  for (int i = 0; i < int(std::size(kReductions)); i++) {
    if (name == kReductions[i]) return Reduction(i);
  }
  return std::nullopt;
}

std::vector<std::string> reduction_names() {
  return {std::begin(kReductions), std::end(kReductions)};
}

Pattern reduction_input(Element element, Reduction reduction, int rank, std::uint64_t iteration) {
  Pattern pattern;
  pattern.seed = mix(iteration);
  for (int part = 0; part < parts(reduction); part++) {
    const double value = reduction == Reduction::prod ? factor(part, rank) : part + offset(rank);
    pattern.table.push_back(encode(element, value));
  }
  return pattern;
}

Pattern reduction_result(Element element, Reduction reduction, int ranks, std::uint64_t iteration) {
  Pattern pattern;
  pattern.seed = mix(iteration);
  for (int part = 0; part < parts(reduction); part++) {
    pattern.table.push_back(encode(element, reduced(element, reduction, part, ranks)));
  }
  const bool power_of_two = (ranks & (ranks - 1)) == 0;
  if (reduction == Reduction::avg && is_floating(element) && !power_of_two) {
    pattern.tolerance = average_tolerance(element, ranks);
  }
  return pattern;
}

Pattern transfer(Element element, int from, int to, std::uint64_t iteration) {
  Pattern pattern;
  pattern.seed = mix(mix(mix(iteration) + std::uint64_t(from)) + std::uint64_t(to));
  std::uint64_t values = 4096;
  while (values - 1 > largest_exact(element))
    values /= 2;
  for (std::uint64_t value = 0; value < values; value++)
    pattern.table.push_back(encode(element, double(value)));
  return pattern;
}

void fill(const Pattern& pattern, Element element, std::size_t first, std::size_t count, void* out) {
  switch (element_size(element)) {
    case 1:
      return fill_words<std::uint8_t>(pattern, first, count, out);
    case 2:
      return fill_words<std::uint16_t>(pattern, first, count, out);
    case 4:
      return fill_words<std::uint32_t>(pattern, first, count, out);
    default:
      return fill_words<std::uint64_t>(pattern, first, count, out);
  }
}

Check check(const Pattern& pattern, Element element, std::size_t first, std::size_t count, const void* data) {
  switch (element_size(element)) {
    case 1:
      return check_words<std::uint8_t>(pattern, element, first, count, data);
    case 2:
      return check_words<std::uint16_t>(pattern, element, first, count, data);
    case 4:
      return check_words<std::uint32_t>(pattern, element, first, count, data);
    default:
      return check_words<std::uint64_t>(pattern, element, first, count, data);
  }
}

}  // namespace weft::rank
