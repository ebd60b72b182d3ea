#include "tests/rig/runner/arithmetic.h"

#include <gtest/gtest.h>

namespace weft::rig {
namespace {

Scenario fabric_of(int hosts, int hosts_per_leaf, int rails, int spines, int nic_mbps, int spine_mbps) {
  Scenario scenario;
  scenario.topology.hosts = hosts;
  scenario.topology.hosts_per_leaf = hosts_per_leaf;
  scenario.topology.rails = rails;
  scenario.topology.spines = spines;
  scenario.topology.nic_mbps = nic_mbps;
  scenario.topology.spine_mbps = spine_mbps;
  scenario.gpus_per_host = rails;
  return scenario;
}

rank::Operation operation(rank::Kind kind, std::size_t bytes) {
  rank::Operation one;
  one.kind = kind;
  one.bytes = bytes;
  return one;
}

TEST(SpreadTest, InterpolatesBetweenNeighbours) {
  const Spread five = spread({50, 10, 40, 20, 30});
  EXPECT_DOUBLE_EQ(five.median, 30);
  EXPECT_DOUBLE_EQ(five.p5, 12);
  EXPECT_DOUBLE_EQ(five.p95, 48);
  EXPECT_DOUBLE_EQ(spread({1, 2}).median, 1.5);
}

TEST(SpreadTest, OfOneValueIsThatValueAndOfNoneIsZero) {
  const Spread one = spread({7});
  EXPECT_DOUBLE_EQ(one.p5, 7);
  EXPECT_DOUBLE_EQ(one.median, 7);
  EXPECT_DOUBLE_EQ(one.p95, 7);
  EXPECT_DOUBLE_EQ(spread({}).median, 0);
}

// The factors are those of nccl-tests' PERFORMANCE.md.
TEST(BusFactorTest, FollowsNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(operation(rank::Kind::all_reduce, 1000), 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(operation(rank::Kind::all_gather, 1000), 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(operation(rank::Kind::reduce_scatter, 1000), 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(operation(rank::Kind::all_to_all, 1000), 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(operation(rank::Kind::broadcast, 1000), 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(operation(rank::Kind::reduce, 1000), 4), 1);
}

TEST(BusFactorTest, OfTheNetInterfaceCountsMessages) {
  rank::Operation several = operation(rank::Kind::net_stream, 1000);
  several.connections = 3;
  several.messages = 5;
  EXPECT_DOUBLE_EQ(bus_factor(several, 4), 15);
  several.kind = rank::Kind::net_incast;
  EXPECT_DOUBLE_EQ(bus_factor(several, 5), 60);
  EXPECT_DOUBLE_EQ(bytes_leaving_a_host(fabric_of(5, 4, 1, 4, 100, 100), several), 60'000);
}

TEST(ShareTest, AllReduceOfOneRankAHostSendsItsBusBytes) {
  EXPECT_DOUBLE_EQ(bytes_leaving_a_host(fabric_of(8, 4, 1, 4, 100, 100), operation(rank::Kind::all_reduce, 1000)),
                   1750);
}

TEST(ShareTest, OneHostSendsNothing) {
  EXPECT_DOUBLE_EQ(bytes_leaving_a_host(fabric_of(1, 1, 1, 0, 100, 100), operation(rank::Kind::all_reduce, 1000)), 0);
}

TEST(ShareTest, AllToAllSendsTheBlocksOfOtherHosts) {
  // Two hosts with two ranks each: every rank sends half of its buffer to the other host.
  EXPECT_DOUBLE_EQ(bytes_leaving_a_host(fabric_of(2, 1, 2, 4, 100, 100), operation(rank::Kind::all_to_all, 1000)),
                   1000);
}

TEST(ShareTest, TheNarrowerOfNicsAndSpinesBounds) {
  const double payload = payload_fraction(fabric_of(2, 1, 1, 4, 1, 1));
  const auto mbps = [&](const Scenario& scenario) { return possible_bytes_per_second(scenario) * 8 / 1e6 / payload; };
  EXPECT_NEAR(mbps(fabric_of(8, 4, 1, 4, 100, 100)), 100, 1e-9) << "1:1: the NIC";
  EXPECT_NEAR(mbps(fabric_of(8, 4, 1, 2, 100, 100)), 50, 1e-9) << "four hosts share two spine links";
  EXPECT_NEAR(mbps(fabric_of(2, 1, 2, 4, 200, 50)), 400, 1e-9) << "fat NIC: both rails, four spine links each";
  EXPECT_NEAR(mbps(fabric_of(4, 4, 1, 0, 100, 1)), 100, 1e-9) << "one leaf: spines don't matter";
}

TEST(ShareTest, UnequalSpinesCarryTheirSum) {
  Scenario scenario = fabric_of(2, 1, 1, 4, 400, 100);
  scenario.topology.unequal_spines = {{3, 25, 0}};
  EXPECT_NEAR(possible_bytes_per_second(scenario) * 8 / 1e6 / payload_fraction(scenario), 325, 1e-9);
}

TEST(ShareTest, PayloadFractionGrowsWithTheMtu) {
  Scenario small, large;
  small.nic.mtu = 1024;
  large.nic.mtu = 4096;
  EXPECT_LT(payload_fraction(small), payload_fraction(large));
  EXPECT_NEAR(payload_fraction(small), 1024.0 / 1082, 1e-12);
}

}  // namespace
}  // namespace weft::rig
