// Stock NCCL over its own Socket and IB transports and over Weft, both versions, every shape: every element of every
// operation.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/e2e/rig_run.h"

namespace weft::e2e {
namespace {

// NCCL version, transport, hosts x GPUs.
using Case = std::tuple<std::string, std::string, std::pair<int, int>>;

class Matrix : public testing::TestWithParam<Case> {};

TEST_P(Matrix, EveryElementIsRight) {
  const auto& [version, net, shape] = GetParam();
  const RigRun run =
      run_rig("operations.json", {"nccl=" + version, "net=" + net, "hosts=" + std::to_string(shape.first),
                                  "gpus_per_host=" + std::to_string(shape.second)});
  EXPECT_EQ(run.code, 0) << run.reason();
  ASSERT_EQ(run.verdict(), "pass") << run.reason();
  EXPECT_EQ(run.result["loaded"]["net"], net == "weft" ? "Weft" : net == "ib" ? "IB" : "Socket");
  EXPECT_GE(run.result["operations"].size(), 10u);
  for (const auto& operation : run.result["operations"]) {
    EXPECT_EQ(operation["wrong"], 0) << operation["op"];
    EXPECT_TRUE(operation["complete"]) << operation["op"];
  }
}

std::string test_name(const testing::TestParamInfo<Case>& one) {
  const auto& [version, net, shape] = one.param;
  std::string name =
      "nccl_" + version + "_" + net + "_" + std::to_string(shape.first) + "x" + std::to_string(shape.second);
  for (char& letter : name) {
    if (letter == '.') letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Matrix,
                         testing::Combine(testing::Values("2.22.3", "2.29.7"), testing::Values("socket", "ib", "weft"),
                                          testing::Values(std::pair{2, 1}, std::pair{2, 2}, std::pair{4, 2})),
                         test_name);

}  // namespace
}  // namespace weft::e2e
