#include "tuner_plugin/decide/decision_table.h"

#include <gtest/gtest.h>

#include <random>

namespace weft::tuner {
namespace {

profile::Rule rule(std::uint64_t low, std::uint64_t high, profile::Algorithm algorithm) {
  profile::Rule out;
  out.bytes = {low, high};
  out.algorithm = algorithm;
  return out;
}

TEST(DecisionTable, FindsTheRuleOfASize) {
  profile::Profile profile;
  profile.rules = {rule(1000, 1999, profile::Algorithm::tree), rule(0, 99, profile::Algorithm::ring)};
  const DecisionTable table(profile, 4, 2);
  EXPECT_EQ(table.find(4, 0)->algorithm, 1);
  EXPECT_EQ(table.find(4, 99)->algorithm, 1);
  EXPECT_EQ(table.find(4, 100), nullptr);
  EXPECT_EQ(table.find(4, 1000)->algorithm, 0);
  EXPECT_EQ(table.find(4, 1999)->algorithm, 0);
  EXPECT_EQ(table.find(4, 2000), nullptr);
  EXPECT_EQ(table.find(2, 50), nullptr) << "another collective";
  EXPECT_EQ(table.find(-1, 50), nullptr);
  EXPECT_EQ(table.find(14, 50), nullptr) << "a collective of a later NCCL";
}

TEST(DecisionTable, LeavesOutRulesForOtherCommunicators) {
  profile::Profile profile;
  profile.rules = {rule(0, 99, profile::Algorithm::ring)};
  profile.rules[0].ranks = {8, 16};
  EXPECT_EQ(DecisionTable(profile, 7, 2).size(), 0u);
  EXPECT_EQ(DecisionTable(profile, 8, 2).size(), 1u);
  EXPECT_EQ(DecisionTable(profile, 17, 2).size(), 0u);
}

// What NCCL 2.22 to 2.30 do with the table: the smallest cell that is not negative, ties to the lowest algorithm, then
// protocol.
int nccl_picks(const std::vector<float>& table) {
  int best = -1;
  for (int i = 0; i < int(table.size()); i++) {
    if (table[std::size_t(i)] >= 0 && (best < 0 || table[std::size_t(i)] < table[std::size_t(best)])) best = i;
  }
  return best;
}

// Whatever table NCCL offers, its release's size, cells ruled out (-1, or -1024 for fp8) and zeros included.
TEST(Apply, KeepsTheRulesOfTheCostTable) {
  std::mt19937 random(3);
  for (int run = 0; run < 20000; run++) {
    const int algorithms = 5 + int(random() % 3), protocols = 3;
    std::vector<float> table(std::size_t(algorithms * protocols));
    for (float& cell : table) {
      const unsigned kind = random() % 4;
      cell = kind == 0 ? -1.0f : kind == 1 ? (random() % 8 == 0 ? -1024.0f : 0.0f) : float(random() % 1000) + 0.5f;
    }
    const std::vector<float> before = table;
    const Decision decision{int(random() % 7), int(random() % 3), int(random() % 3)};
    int channels = 0;
    const bool applied = apply(decision, table.data(), algorithms, protocols, &channels);
    const int chosen = decision.algorithm * protocols + decision.protocol;
    const bool possible = decision.algorithm < algorithms && before[std::size_t(chosen)] >= 0;
    ASSERT_EQ(applied, possible);
    for (std::size_t i = 0; i < table.size(); i++) {
      if (before[i] < 0)
        ASSERT_EQ(table[i], before[i]) << "a cell that was ruled out stays so";
      else
        ASSERT_GE(table[i], 0);
    }
    if (applied) {
      ASSERT_EQ(nccl_picks(table), chosen);
      ASSERT_EQ(channels, decision.channels);
    } else {
      ASSERT_EQ(table, before);
      ASSERT_EQ(channels, 0);
    }
  }
}

}  // namespace
}  // namespace weft::tuner
