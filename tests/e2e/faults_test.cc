// What goes wrong must show: tests of the tests, and faults of the fabric and the hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/rig_run.h"

namespace weft::e2e {
namespace {

using testing::HasSubstr;

// A check that can't fail proves nothing: each of these breaks the rig on purpose.
TEST(TestsOfTheTests, AWrongReductionIsFound) {
  const RigRun run = run_rig("two_hosts.json", {"defects=[\"wrong_reduction\"]"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.reason(), HasSubstr("wrong elements in all_reduce"));
}

TEST(TestsOfTheTests, ACorruptedPieceIsFound) {
  const RigRun run = run_rig("two_hosts.json", {"defects=[\"corrupt_payload\"]"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.reason(), HasSubstr("wrong elements"));
}

TEST(TestsOfTheTests, APacketThatIsNeverResentIsFound) {
  const RigRun run = run_rig("loss.json", {"defects=[\"never_retransmit\"]", "time_limit_s=8"});
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.verdict(), "fail");
}

TEST(Faults, LostPacketsAreResent) {
  const RigRun run = run_rig("loss.json");
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
  std::uint64_t resent = 0;
  for (const auto& flow : run.result["flows"]) resent += flow["retransmitted"].get<std::uint64_t>();
  EXPECT_GT(resent, 0u) << "nothing was lost: the scenario shows nothing";
}

// One bad host of four: every rank ends with an error within ten seconds, and none moves to another transport.
TEST(Faults, ABadHostEndsEveryRankSoon) {
  const RigRun run = run_rig("bad_host.json");
  EXPECT_EQ(run.code, 1);
  ASSERT_EQ(run.result["ranks"].size(), 4u);
  bool cause_is_named = false;
  for (const auto& rank : run.result["ranks"]) {
    EXPECT_NE(rank["exit"], 0);
    EXPECT_LT(rank["after_s"], 10.0);
    EXPECT_TRUE(rank["net"] == "Weft" || rank["net"] == "") << rank["net"];
    for (const auto& warning : rank["warnings"]) {
      cause_is_named = cause_is_named || warning.get<std::string>().find("no usable RoCE v2 GID") != std::string::npos;
    }
  }
  EXPECT_TRUE(cause_is_named);
}

TEST(Faults, AKilledRankEndsTheOthers) {
  const RigRun run = run_rig("killed_rank.json");
  EXPECT_EQ(run.code, 1);
  for (const auto& rank : run.result["ranks"]) EXPECT_NE(rank["exit"], 0);
}

TEST(Faults, ASpineThatDropsSilentlyForAMomentIsSurvived) {
  const RigRun run = run_rig("spine_drop.json");
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
}

TEST(Tuner, IsLoadedAndDecides) {
  for (const char* version : {"2.22.3", "2.29.7"}) {
    const RigRun run = run_rig("two_hosts.json", {std::string("nccl=") + version, "tuner=weft", "environment.WEFT_PROFILE=" RIG_PROFILE});
    EXPECT_EQ(run.verdict(), "pass") << run.reason();
    EXPECT_EQ(run.result["loaded"]["tuner"], "Weft") << version;
  }
}

TEST(Devices, WithoutSharedReceiveQueuesEveryElementIsRight) {
  const RigRun run = run_rig("operations.json", {"nic.max_srq=0"});
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
}

TEST(Rig, WrongInputIsExitCode2) {
  EXPECT_EQ(run_rig("two_hosts.json", {"nett=weft"}).code, 2);
  EXPECT_EQ(run_rig("two_hosts.json", {"net=infiniband"}).code, 2);
  EXPECT_EQ(run_rig("no_such_file.json").code, 2);
}

}  // namespace
}  // namespace weft::e2e
