#include "net_plugin/paths/path_budget.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace weft::paths {
namespace {

std::shared_ptr<PathBudget> budget(int device = 0) {
  return std::make_shared<PathBudget>(BudgetLimits{24, 48, device, 2});
}

TEST(PathBudget, FewConnectionsGetAllTheyMayHave) {
  const auto shared = budget();
  PathShare first(shared, 1), second(shared, 1);
  EXPECT_EQ(first.grow(), 23);
  EXPECT_EQ(second.grow(), 23);
  EXPECT_EQ(first.grow(), 0);
  EXPECT_EQ(shared->paths(), 48);
}

// NCCL makes as many connections to a neighbour as it has channels: 32 with one queue pair each is its own transport's
// default, and twice that the limit.
TEST(PathBudget, ManyChannelsToOneNeighbourShare) {
  const auto shared = budget();
  std::vector<PathShare> channels;
  for (int i = 0; i < 32; i++)
    channels.emplace_back(shared, 1);
  for (PathShare& channel : channels)
    channel.grow();
  EXPECT_EQ(shared->paths(), 64);
}

TEST(PathBudget, ManyPeersStayNearOneQueuePairEach) {
  const auto shared = budget();
  std::vector<PathShare> connections;
  for (int i = 0; i < 4 * 1023; i++)
    connections.emplace_back(shared, std::uint64_t(i / 4));
  for (PathShare& connection : connections)
    connection.grow();
  EXPECT_LE(shared->paths(), 2 * 4 * 1023);
}

TEST(PathBudget, LeavesTheDeviceHalfOfItsQueuePairs) {
  const auto shared = budget(20);
  PathShare first(shared, 1), second(shared, 2);
  EXPECT_EQ(first.grow(), 8);  // 10 in all, two are taken
  EXPECT_EQ(second.grow(), 0);
}

// A property: whoever comes and goes, limits hold, nobody loses the first path, and all is given back.
TEST(PathBudget, HoldsWhateverHappens) {
  for (unsigned seed = 1; seed <= 20; seed++) {
    std::mt19937 random(seed);
    const auto shared = budget(int(random() % 2) * 3000);
    std::vector<std::unique_ptr<PathShare>> open;
    for (int step = 0; step < 3000; step++) {
      const unsigned what = random() % 4;
      if (what == 0 || open.empty()) {
        open.push_back(std::make_unique<PathShare>(shared, random() % 7));
        ASSERT_EQ(open.back()->paths(), 1);
        ASSERT_LE(open.back()->possible(), 24);
      } else if (what == 1) {
        open.erase(open.begin() + std::ptrdiff_t(random() % open.size()));
      } else {
        open[random() % open.size()]->grow();
      }
      int sum = 0;
      for (const auto& one : open) {
        ASSERT_LE(one->paths(), 24);
        sum += one->paths();
      }
      ASSERT_EQ(sum, shared->paths());
      ASSERT_EQ(int(open.size()), shared->connections());
    }
    open.clear();
    EXPECT_EQ(shared->paths(), 0);
  }
}

}  // namespace
}  // namespace weft::paths
