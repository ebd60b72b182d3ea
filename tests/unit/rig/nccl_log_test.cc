#include "tests/rig/runner/nccl_log.h"

#include <gtest/gtest.h>

namespace weft::rig {
namespace {

TEST(NcclLogTest, Finds229sNetAndTuner) {
  const LogFindings found = read_log(
      "h1:1:2 [0] NCCL INFO NET/Plugin: Loaded net plugin Weft (v11)\n"
      "h1:1:2 [0] NCCL INFO Using network Weft\n"
      "h1:1:2 [0] NCCL INFO TUNER/Plugin: Using Weft (v5)\n");
  EXPECT_EQ(found.net, "Weft");
  EXPECT_EQ(found.net_plugin, "Weft (v11)");
  EXPECT_EQ(found.tuner, "Weft");
  EXPECT_TRUE(found.warnings.empty());
}

TEST(NcclLogTest, Finds222sTuner) {
  EXPECT_EQ(read_log("h1:1:2 [0] NCCL INFO TUNER/Plugin: Using tuner plugin Weft\n").tuner, "Weft");
}

TEST(NcclLogTest, ATunerThatCouldNotBeLoadedIsNone) {
  const LogFindings found = read_log(
      "h1:1:2 [0] NCCL INFO TUNER/Plugin: Failed to find ncclTunerPlugin_v5 symbol.\n"
      "h1:1:2 [0] NCCL INFO Using network IB\n");
  EXPECT_EQ(found.tuner, "");
  EXPECT_EQ(found.net, "IB");
}

TEST(NcclLogTest, CollectsWarnings) {
  const LogFindings found = read_log("\nh1:1:2 [0] misc/socket.cc:35 NCCL WARN socketProgress: closed\nother\n");
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find("socketProgress"), std::string::npos);
}

TEST(TailTest, TakesTheLastLines) {
  EXPECT_EQ(tail("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(tail("a\nb\nc", 1), "c");
  EXPECT_EQ(tail("a\nb", 5), "a\nb");
  EXPECT_EQ(tail("", 3), "");
}

}  // namespace
}  // namespace weft::rig
