#include "tests/rig/rank/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

namespace weft::rank {
namespace {

class ExchangeTest : public testing::Test {
 protected:
  ExchangeTest() { std::filesystem::create_directories(folder_); }
  ~ExchangeTest() override { std::filesystem::remove_all(folder_); }
  static Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

  std::string folder_ = testing::TempDir() + "exchange_" + std::to_string(getpid());
};

TEST_F(ExchangeTest, NobodyLeavesABarrierBeforeAllHaveCome) {
  constexpr int kRanks = 4, kRounds = 50;
  std::atomic<int> arrived{0};
  std::atomic<bool> early{false};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; rank++) {
    ranks.emplace_back([&] {
      auto exchange = Exchange::open(folder_, kRanks);
      for (int round = 1; round <= kRounds; round++) {
        arrived++;
        if (!exchange->barrier(in(std::chrono::seconds(20)))) early = true;
        if (arrived < round * kRanks) early = true;
      }
    });
  }
  for (auto& rank : ranks)
    rank.join();
  EXPECT_FALSE(early);
  EXPECT_EQ(arrived, kRanks * kRounds);
}

TEST_F(ExchangeTest, ABarrierEndsWhenARankIsLost) {
  auto mine = Exchange::open(folder_, 2);
  auto other = Exchange::open(folder_, 2);
  std::thread lost([&] { other->fail(1); });
  const auto result = mine->barrier(in(std::chrono::seconds(20)));
  lost.join();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().text(), testing::HasSubstr("rank 1 is lost"));
}

TEST_F(ExchangeTest, ABarrierEndsAtItsDeadline) {
  auto mine = Exchange::open(folder_, 3);
  const auto result = mine->barrier(in(std::chrono::milliseconds(5)));
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().text(), testing::HasSubstr("1 of 3 ranks came in time"));
}

TEST_F(ExchangeTest, PublishedBytesArriveWhole) {
  auto mine = Exchange::open(folder_, 2);
  const std::string content("a\0b\n", 4);
  std::thread publisher([&] { ASSERT_TRUE(Exchange::open(folder_, 2)->publish("id", content).ok()); });
  const auto received = mine->await("id", in(std::chrono::seconds(20)));
  publisher.join();
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(*received, content);
}

TEST_F(ExchangeTest, AFolderThatIsMissingIsNamed) {
  const auto result = Exchange::open("/nonexistent/folder", 2);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().text(), testing::HasSubstr("/nonexistent/folder"));
}

}  // namespace
}  // namespace weft::rank
