// Weft and NCCL's own transports through one harness of NCCL's net interface: the same calls, the same results.
#include <gtest/gtest.h>

#include "tests/e2e/rig_run.h"

namespace weft::e2e {
namespace {

class NetInterface : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(NetInterface, CarriesEveryMessageRight) {
  const auto [nccl, net] = GetParam();
  const RigRun run = run_rig("net_stream.json", {"nccl=" + nccl, "net=" + net});
  ASSERT_EQ(run.verdict(), "pass") << run.reason();
  ASSERT_EQ(run.result["operations"].size(), 2u);
  for (const auto& operation : run.result["operations"]) {
    EXPECT_EQ(operation["wrong"], 0);
    EXPECT_GT(operation["message_us"]["median"], 0);
  }
  // Its paths reach every spine; the others take as many as they have queue pairs or sockets.
  if (net != "weft") return;
  for (const auto& spine : run.result["fabric"]["spines"])
    EXPECT_GT(spine["bytes"], 1'000'000) << spine["name"];
}

// A message that arrives damaged is noticed here as well, whichever transport carried it.
TEST(NetInterfaceTestOfTheTest, ADamagedMessageIsAFailure) {
  const RigRun run = run_rig("net_stream.json", {"net=weft", "defects=[\"corrupt_payload\"]"});
  EXPECT_EQ(run.verdict(), "fail");
}

INSTANTIATE_TEST_SUITE_P(All, NetInterface,
                         testing::Combine(testing::Values("2.22.3", "2.29.7"), testing::Values("socket", "ib", "weft")),
                         [](const auto& one) {
                           std::string name = std::get<0>(one.param) + "_" + std::get<1>(one.param);
                           for (char& letter : name)
                             if (letter == '.') letter = '_';
                           return name;
                         });

}  // namespace
}  // namespace weft::e2e
