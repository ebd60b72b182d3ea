#include "tuner_plugin/decide/decision_table.h"

#include <algorithm>

namespace weft::tuner {

DecisionTable::DecisionTable(const profile::Profile& profile, std::uint64_t ranks, std::uint64_t nodes) {
  for (const profile::Rule& rule : profile.rules) {
    if (!rule.ranks.contains(ranks) || !rule.nodes.contains(nodes)) continue;
    entries_[std::size_t(rule.collective)].push_back(
        {rule.bytes.low, rule.bytes.high, {int(rule.algorithm), int(rule.protocol), rule.channels}});
  }
  for (auto& list : entries_) {
    std::sort(list.begin(), list.end(), [](const Entry& left, const Entry& right) { return left.low < right.low; });
  }
}

const Decision* DecisionTable::find(int collective, std::size_t bytes) const {
  if (collective < 0 || collective >= kCollectives) return nullptr;
  const auto& list = entries_[std::size_t(collective)];
  const auto after = std::upper_bound(list.begin(), list.end(), bytes,
                                      [](std::size_t value, const Entry& entry) { return value < entry.low; });
  if (after == list.begin()) return nullptr;
  const Entry& entry = *(after - 1);
  return bytes <= entry.high ? &entry.decision : nullptr;
}

std::size_t DecisionTable::size() const {
  std::size_t sum = 0;
  for (const auto& list : entries_)
    sum += list.size();
  return sum;
}

bool apply(const Decision& decision, float* table, int algorithms, int protocols, int* channels) {
  if (decision.algorithm >= algorithms || decision.protocol >= protocols) return false;
  float& cell = table[decision.algorithm * protocols + decision.protocol];
  // Negative: not available, or excluded by NCCL_ALGO or NCCL_PROTO. Never touched.
  if (cell < 0) return false;
  // NCCL takes the smallest cell, ties to the lowest: another cell that is 0 already would win against ours.
  for (int i = 0; i < algorithms * protocols; i++) {
    if (&table[i] != &cell && table[i] == 0) table[i] = 1;
  }
  cell = 0;
  if (decision.channels > 0) *channels = decision.channels;
  return true;
}

}  // namespace weft::tuner
