#include "tests/rig/fabric/topology.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <set>

namespace weft::fabric {
namespace {

// Properties of the plan over a range of shapes.
class Plans : public testing::TestWithParam<Topology> {};

Topology shape(int hosts, int rails, int hosts_per_leaf, int spines) {
  Topology topology;
  topology.hosts = hosts;
  topology.rails = rails;
  topology.hosts_per_leaf = hosts_per_leaf;
  topology.spines = spines;
  return topology;
}

TEST_P(Plans, AddressesAndSubnetsAreDistinct) {
  std::set<std::string> addresses, subnets;
  std::size_t count = 0;
  for (const Nic& nic : nics(GetParam())) {
    count += 2;
    addresses.insert({nic.address, nic.gateway});
    EXPECT_TRUE(subnets.insert(nic.subnet).second) << nic.subnet;
  }
  for (const SpineLink& link : spine_links(GetParam())) {
    count += 2;
    addresses.insert({link.leaf_address, link.spine_address});
  }
  EXPECT_EQ(addresses.size(), count);
}

TEST_P(Plans, EachRailHasItsOwnLeafForAGroupOfHosts) {
  const Topology& topology = GetParam();
  for (const Nic& left : nics(topology)) {
    EXPECT_LT(left.leaf, leaf_count(topology));
    for (const Nic& right : nics(topology)) {
      const bool same =
          left.rail == right.rail && left.host / topology.hosts_per_leaf == right.host / topology.hosts_per_leaf;
      EXPECT_EQ(left.leaf == right.leaf, same) << left.address << ' ' << right.address;
    }
  }
}

TEST_P(Plans, EveryLeafReachesEverySpineOnce) {
  const Topology& topology = GetParam();
  std::set<std::pair<int, int>> pairs;
  for (const SpineLink& link : spine_links(topology))
    EXPECT_TRUE(pairs.insert({link.leaf, link.spine}).second);
  EXPECT_EQ(pairs.size(), std::size_t(leaf_count(topology) * topology.spines));
}

TEST_P(Plans, PortNamesOfANodeAreDistinctAndFitTheKernel) {
  constexpr std::size_t kLongest = 15;  // IFNAMSIZ - 1
  std::set<std::string> ports;
  for (const Nic& nic : nics(GetParam()))
    EXPECT_TRUE(ports.insert("l" + std::to_string(nic.leaf) + nic.leaf_port).second);
  for (const SpineLink& link : spine_links(GetParam())) {
    EXPECT_TRUE(ports.insert("l" + std::to_string(link.leaf) + link.leaf_port).second);
    EXPECT_TRUE(ports.insert("s" + std::to_string(link.spine) + link.spine_port).second);
    EXPECT_LE(link.spine_port.size(), kLongest);
  }
}

TEST_P(Plans, AddressesAreValidAndDistinct) {
  std::set<std::string> addresses;
  const auto add = [&](const std::string& address) {
    in_addr parsed{};
    EXPECT_EQ(inet_pton(AF_INET, address.c_str(), &parsed), 1) << address;
    EXPECT_TRUE(addresses.insert(address).second) << address;
  };
  for (const Nic& nic : nics(GetParam())) {
    add(nic.address);
    add(nic.gateway);
  }
  for (const SpineLink& link : spine_links(GetParam())) {
    add(link.leaf_address);
    add(link.spine_address);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Plans,
                         testing::Values(shape(2, 1, 1, 4), shape(8, 1, 4, 4), shape(2, 2, 1, 4), shape(5, 3, 2, 1),
                                         shape(1, 1, 1, 0), shape(64, 1, 1, 32), shape(16, 8, 4, 8),
                                         shape(64, 8, 1, 32)));

}  // namespace
}  // namespace weft::fabric
