// What goes wrong must show: tests of the tests, and faults of the fabric and the hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/rig_run.h"

namespace weft::e2e {
namespace {

using testing::AnyOf;
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

// The same loss, from the first operation on, with and without the defect: what fails is the transfer that waits for a
// lost packet. Enough operations that most come after the NICs have looked at their faults, which they do every 50 ms.
TEST(TestsOfTheTests, APacketThatIsNeverResentIsFound) {
  const std::vector<std::string> lossy = {
      R"(faults=[{"fault":"nic_loss","host":"h2","nic":"mlx5_0","drop_ppm":20000,"at_s":0}])",
      "operations.0.iterations=20", "time_limit_s=30"};
  const RigRun good = run_rig("loss.json", lossy);
  EXPECT_EQ(good.verdict(), "pass") << good.reason();
  std::vector<std::string> defect = lossy;
  defect.push_back(R"(defects=["never_retransmit"])");
  const RigRun run = run_rig("loss.json", defect);
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.reason(), AnyOf(HasSubstr("time limit"), HasSubstr("all_reduce"), HasSubstr("async")));
}

TEST(TestsOfTheTests, AMissingFlushIsFound) {
  for (const char* net : {"net=ib", "net=weft"}) {
    const RigRun run = run_rig("late_gpu_writes.json", {net, "environment.NCCL_GDR_FLUSH_DISABLE=1"});
    EXPECT_EQ(run.code, 1);
    EXPECT_THAT(run.reason(), HasSubstr("wrong elements")) << net;
  }
}

TEST(TestsOfTheTests, AFaultThatNeverHappensIsAFailure) {
  const RigRun run = run_rig(
      "two_hosts.json", {"faults=[{\"fault\":\"spine_down\",\"spine\":1,\"at_s\":50}]", "operations.0.bytes=1024"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.reason(), HasSubstr("faults.0 (spine_down) never happened"));
}

// What a transport has to get over by itself: NCCL's own and Weft.
class Survives : public testing::TestWithParam<std::string> {
 protected:
  static std::string net() { return "net=" + GetParam(); }
};

TEST_P(Survives, LostPackets) {
  const RigRun run = run_rig("loss.json", {net()});
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
  std::uint64_t resent = 0;
  for (const auto& flow : run.result["flows"])
    resent += flow["retransmitted"].get<std::uint64_t>();
  EXPECT_GT(resent, 0u) << "nothing was lost: the scenario shows nothing";
}

TEST_P(Survives, ASpineThatDropsSilentlyForAMoment) {
  const RigRun run = run_rig("spine_drop.json", {net()});
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
}

TEST_P(Survives, ASpineThatGoesDownAndComesBack) {
  const RigRun run = run_rig("spine_down.json", {net()});
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
}

TEST_P(Survives, APortThatFlaps) {
  const RigRun run = run_rig("port_flap.json", {net()});
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
}

TEST_P(Survives, GpuWritesThatBecomeVisibleLate) {
  for (const char* version : {"2.22.3", "2.29.7"}) {
    // Without dma-buf memory is registered through a peer memory module. The one of NCCL's older transport lies where
    // the rig has no file.
    for (const char* dmabuf : {"true", "false"}) {
      if (GetParam() == "ib" && std::string(dmabuf) == "false") continue;
      const RigRun run =
          run_rig("late_gpu_writes.json", {net(), std::string("nccl=") + version, std::string("gpu.dmabuf=") + dmabuf});
      EXPECT_EQ(run.verdict(), "pass") << version << ", dma-buf " << dmabuf << ": " << run.reason();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Survives, testing::Values("ib", "weft"), [](const auto& one) { return one.param; });

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
  for (const auto& rank : run.result["ranks"])
    EXPECT_NE(rank["exit"], 0);
}

TEST(Tuner, IsLoadedAndDecides) {
  for (const char* version : {"2.22.3", "2.29.7"}) {
    const RigRun run = run_rig("two_hosts.json",
                               {std::string("nccl=") + version, "tuner=weft", "environment.WEFT_PROFILE=" RIG_PROFILE});
    EXPECT_EQ(run.verdict(), "pass") << run.reason();
    EXPECT_EQ(run.result["loaded"]["tuner"], "Weft") << version;
  }
}

TEST(Devices, WithoutSharedReceiveQueuesEveryElementIsRight) {
  const RigRun run = run_rig("operations.json", {"nic.max_srq=0"});
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
}

TEST(Devices, WithAPathMtuOf1024EveryElementIsRight) {
  const RigRun run = run_rig("operations.json", {"nic.mtu=1024"});
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
}

TEST(Rig, WrongInputIsExitCode2) {
  EXPECT_EQ(run_rig("two_hosts.json", {"nett=weft"}).code, 2);
  EXPECT_EQ(run_rig("two_hosts.json", {"net=infiniband"}).code, 2);
  EXPECT_EQ(run_rig("no_such_file.json").code, 2);
}

}  // namespace
}  // namespace weft::e2e
