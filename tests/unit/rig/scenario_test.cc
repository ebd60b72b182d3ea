#include "tests/rig/runner/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::rig {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kMinimal = R"({"hosts": 2, "operations": [{"op": "all_reduce", "bytes": 1024}]})";

Result<Scenario> with(const std::vector<std::string>& overrides) {
  return parse_scenario(kMinimal, "test.json", overrides);
}

TEST(ScenarioTest, AMinimalFileGetsUsefulDefaults) {
  const auto scenario = with({});
  ASSERT_TRUE(scenario) << scenario.error().text();
  EXPECT_EQ(scenario->ranks(), 2);
  EXPECT_EQ(scenario->net, "weft");
  EXPECT_EQ(scenario->nccl, "2.29.7");
  EXPECT_EQ(scenario->topology.hosts_per_leaf, 1);
  EXPECT_EQ(scenario->nic.mtu, 4096);
  EXPECT_EQ(scenario->host_order, (std::vector<int>{0, 1}));
}

TEST(ScenarioTest, RanksFollowTheHostOrder) {
  const auto scenario = with({"hosts=4", "gpus_per_host=2", "host_order=[1,3,2,4]"});
  ASSERT_TRUE(scenario) << scenario.error().text();
  std::vector<int> hosts;
  for (int rank = 0; rank < scenario->ranks(); rank++)
    hosts.push_back(scenario->host_of_rank(rank));
  EXPECT_EQ(hosts, (std::vector<int>{0, 0, 2, 2, 1, 1, 3, 3}));
  EXPECT_EQ(scenario->gpu_of_rank(5), 1);
}

TEST(ScenarioTest, SpinesMayDiffer) {
  const auto scenario =
      with({"fabric.spine_mbps=100", R"(fabric.unequal_spines=[{"spine":2,"mbps":25},{"spine":4,"delay_us":7}])"});
  ASSERT_TRUE(scenario) << scenario.error().text();
  EXPECT_EQ(fabric::spine_shape(scenario->topology, 0).mbps, 100);
  EXPECT_EQ(fabric::spine_shape(scenario->topology, 1).mbps, 25);
  EXPECT_EQ(fabric::spine_shape(scenario->topology, 3).mbps, 100);
  EXPECT_EQ(fabric::spine_shape(scenario->topology, 3).delay_us, 7);
}

TEST(ScenarioTest, AnElementThatIsNotThereIsNamed) {
  for (const char* index : {"1", "-1", "99999999999999999999999", "x", ""}) {
    const auto scenario = with({std::string("operations.") + index + ".bytes=1"});
    ASSERT_FALSE(scenario) << index;
    EXPECT_THAT(scenario.error().text(), HasSubstr("there is no element"));
  }
}

struct Wrong {
  std::string override_text;
  std::string place;  // the message names it

  friend std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.override_text; }
};

class WrongFields : public testing::TestWithParam<Wrong> {};

TEST_P(WrongFields, AreNamed) {
  const auto scenario = with({GetParam().override_text});
  ASSERT_FALSE(scenario) << "accepted: " << GetParam().override_text;
  EXPECT_THAT(scenario.error().text(), AllOf(HasSubstr("test.json"), HasSubstr(GetParam().place)));
}

INSTANTIATE_TEST_SUITE_P(
    EveryField, WrongFields,
    testing::Values(
        Wrong{"hosts=0", "hosts"}, Wrong{"hosts=\"2\"", "hosts"}, Wrong{"name=3", "name"},
        Wrong{"description=3", "description"}, Wrong{"nics_per_host=9", "nics_per_host"},
        Wrong{"gpus_per_host=0", "gpus_per_host"}, Wrong{"fabric=1", "fabric"},
        Wrong{"fabric.hosts_per_leaf=0", "hosts_per_leaf"}, Wrong{"fabric.spines=-1", "spines"},
        Wrong{"fabric.spines=0", "spines"}, Wrong{"fabric.nic_mbps=0", "nic_mbps"},
        Wrong{"fabric.spine_mbps=1.5", "spine_mbps"}, Wrong{"fabric.delay_us=-1", "delay_us"},
        Wrong{"fabric.mtu=100", "fabric.mtu"}, Wrong{"fabric.mtu=1500", "nic.mtu"},
        Wrong{R"(fabric.unequal_spines=[{"mbps":5}])", "spine"},
        Wrong{R"(fabric.unequal_spines=[{"spine":5}])", "unequal_spines[0].spine"},
        Wrong{R"(fabric.unequal_spines=[{"spine":1},{"spine":1}])", "there twice"},
        Wrong{R"(fabric.unequal_spines=[{"spine":1,"mbps":0}])", "mbps"},
        Wrong{R"(fabric.unequal_spines=[{"spine":1,"delay_us":-1}])", "delay_us"},
        Wrong{"fabric.hash_seed=0", "hash_seed"}, Wrong{"fabric.hash=xor", "hash"},
        Wrong{"fabric.spine=4", "did you mean \"spines\""}, Wrong{"nic.mtu=1000", "nic.mtu"},
        Wrong{"nic.name_prefix=1", "name_prefix"}, Wrong{"nic.speed_mbps=-1", "speed_mbps"},
        Wrong{"nic.window_bytes=1", "window_bytes"}, Wrong{"nic.max_qp=0", "max_qp"},
        Wrong{"nic.max_srq=-1", "max_srq"}, Wrong{"nic.max_inline=-1", "max_inline"}, Wrong{"nic.ece=1", "ece"},
        Wrong{"nic.modify_udp_sport=1", "modify_udp_sport"}, Wrong{"nic.late_gpu_writes=1", "late_gpu_writes"},
        Wrong{"nic.gids=[\"ipv5\"]", "gids"}, Wrong{"gpu.gpudirect=1", "gpudirect"}, Wrong{"gpu.dmabuf=1", "dmabuf"},
        Wrong{"gpu.compute_capability=\"3.0\"", "compute_capability"}, Wrong{"nccl=\"2.30.0\"", "nccl"},
        Wrong{"net=web", "net"}, Wrong{"tuner=ib", "tuner"}, Wrong{"environment=3", "environment"},
        Wrong{"host_order=[1,1]", "host_order"}, Wrong{"host_order=[1]", "host_order"},
        Wrong{"unusable_host=3", "unusable_host"}, Wrong{"time_limit_s=0", "time_limit_s"},
        Wrong{"defects=[\"slow\"]", "defects"}, Wrong{"operations.0.op=all_reduse", "did you mean \"all_reduce\""},
        Wrong{"operations.0.bytes=0", "bytes"}, Wrong{"operations.0.type=f31", "type"},
        Wrong{"operations.0.reduction=mul", "reduction"}, Wrong{"operations.0.iterations=0", "iterations"},
        Wrong{"operations.0.warmup=-1", "warmup"}, Wrong{"operations.0.in_place=1", "in_place"},
        Wrong{"operations.0.root=2", "root"}, Wrong{"operations.0.size=2", "size"},
        Wrong{R"(faults=[{"fault":"fire","at_s":1}])", "fault"}, Wrong{R"(faults=[{"fault":"kill","rank":0}])", "at_s"},
        Wrong{R"(faults=[{"fault":"kill","at_s":1}])", "rank"},
        Wrong{R"(faults=[{"fault":"kill","at_s":1,"rank":2}])", "rank"},
        Wrong{R"(faults=[{"fault":"kill","at_s":1,"rank":0,"after":"dinner"}])", "after"},
        Wrong{R"(faults=[{"fault":"spine_down","at_s":1,"spine":5}])", "spine"},
        Wrong{R"(faults=[{"fault":"nic_down","at_s":1,"host":"h3","nic":"mlx5_0"}])", "host"},
        Wrong{R"(faults=[{"fault":"nic_down","at_s":1,"host":"h1","nic":"mlx5_1"}])", "nic"},
        Wrong{R"(faults=[{"fault":"nic_loss","at_s":1,"host":"h1","nic":"mlx5_0"}])", "drop_ppm"},
        Wrong{"colour=red", "colour"}));

TEST(ScenarioTest, AllMistakesAreReportedTogether) {
  const auto scenario = with({"fabric.spines=99", "net=web", "time_limit_s=0"});
  ASSERT_FALSE(scenario);
  EXPECT_THAT(scenario.error().text(), AllOf(HasSubstr("spines"), HasSubstr("net"), HasSubstr("time_limit_s")));
}

TEST(OverrideTest, SetsValuesAndBareWordsAtAnyDepth) {
  const auto scenario = with({"fabric.hash_seed=7", "operations.0.bytes=2048", "net=ib", "environment.NCCL_IB_TC=106"});
  ASSERT_TRUE(scenario) << scenario.error().text();
  EXPECT_EQ(scenario->topology.hash_seed, 7u);
  EXPECT_EQ(scenario->operations[0].bytes, 2048u);
  EXPECT_EQ(scenario->net, "ib");
  EXPECT_EQ(scenario->environment.at("NCCL_IB_TC"), "106");
}

TEST(OverrideTest, MistakesAreNamed) {
  for (const std::string text : {"net", "=ib", "operations.3.bytes=1", "hosts.first=1"}) {
    const auto scenario = with({text});
    ASSERT_FALSE(scenario) << text;
    EXPECT_THAT(scenario.error().text(), AllOf(HasSubstr("--set"), HasSubstr(text)));
  }
}

}  // namespace
}  // namespace weft::rig
