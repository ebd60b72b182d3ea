#include "bench/weft/statistics/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace weft::statistics {
namespace {

TEST(Statistics, Median) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Statistics, ARatioOfEqualPairsIsExact) {
  const Ratio ratio = paired_ratio({2, 4, 6}, {1, 2, 3});
  EXPECT_DOUBLE_EQ(ratio.mean, 2);
  EXPECT_NEAR(ratio.low, 2, 1e-9);
  EXPECT_NEAR(ratio.high, 2, 1e-9);
  EXPECT_TRUE(ratio.resolved());
}

TEST(Statistics, OnePairResolvesNothing) { EXPECT_FALSE(paired_ratio({2}, {1}).resolved()); }

// The interval covers the true ratio about 95 times of 100, which is what it claims.
TEST(Statistics, TheIntervalCoversWhatItClaims) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.1);
  int covered = 0;
  constexpr int kRuns = 4000;
  for (int run = 0; run < kRuns; run++) {
    std::vector<double> top, bottom;
    for (int i = 0; i < 5; i++) {
      bottom.push_back(std::exp(noise(random)));
      top.push_back(1.5 * bottom.back() * std::exp(noise(random)));
    }
    const Ratio ratio = paired_ratio(top, bottom);
    covered += ratio.low <= 1.5 && 1.5 <= ratio.high;
  }
  EXPECT_NEAR(covered / double(kRuns), 0.95, 0.015);
}

}  // namespace
}  // namespace weft::statistics
