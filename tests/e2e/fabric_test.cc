// What a result says about the fabric agrees with the fabric's own counters, and the demo's fabrics work with both
// transports.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "tests/e2e/rig_run.h"

namespace weft::e2e {
namespace {

class Nets : public testing::TestWithParam<std::string> {};

// The spine of a flow is predicted from the leaves' hash; the spines' counters saw the packets. They can only agree
// when the leaves really hash as their seed says.
TEST_P(Nets, PredictedSpinesCarryTheBytesThatTheyCounted) {
  for (const char* seed : {"3", "11"}) {
    const RigRun run = run_rig("two_hosts.json", {"net=" + GetParam(), std::string("fabric.hash_seed=") + seed});
    ASSERT_EQ(run.verdict(), "pass") << run.reason();
    std::map<std::string, double> predicted;
    double all = 0;
    for (const auto& flow : run.result["flows"]) {
      predicted[flow["spine"].get<std::string>()] += flow["bytes"].get<double>();
      all += flow["bytes"].get<double>();
    }
    ASSERT_GT(all, 0);
    for (const auto& spine : run.result["fabric"]["spines"]) {
      // The counters have headers of Ethernet and IP, and NCCL's bootstrap over TCP, on top.
      EXPECT_NEAR(spine["bytes"].get<double>(), predicted[spine["name"]], 0.05 * all)
          << "seed " << seed << ' ' << spine;
    }
  }
}

TEST_P(Nets, OneToOneFabric) {
  const RigRun run =
      run_rig("one_to_one.json", {"net=" + GetParam(), "operations.0.iterations=1", "operations.0.warmup=0"});
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
  EXPECT_GT(run.result["fabric"]["share"], 0);
  EXPECT_EQ(run.result["fabric"]["spines"].size(), 4u);
}

TEST_P(Nets, FatNicFabric) {
  const RigRun run =
      run_rig("fat_nic.json", {"net=" + GetParam(), "operations.0.iterations=1", "operations.0.bytes=4194304"});
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
  EXPECT_GT(run.result["fabric"]["share"], 0);
}

INSTANTIATE_TEST_SUITE_P(Over, Nets, testing::Values("ib", "weft"), [](const auto& one) { return one.param; });

TEST(Rig, TwoRunAtOnce) {
  RigRun other;
  std::thread second([&] { other = run_rig("two_hosts.json", {}, "second"); });
  const RigRun run = run_rig("two_hosts.json", {}, "first");
  second.join();
  EXPECT_EQ(run.verdict(), "pass") << run.reason();
  EXPECT_EQ(other.verdict(), "pass") << other.reason();
}

}  // namespace
}  // namespace weft::e2e
