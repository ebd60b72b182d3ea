#include "net_plugin/paths/source_port.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::paths {
namespace {

TEST(SourcePort, EveryPortHasALabelThatGivesIt) {
  for (std::uint32_t port = kFirstPort; port <= 0xffff; port++) {
    const std::uint32_t label = label_of_port(std::uint16_t(port));
    ASSERT_NE(label, 0u);
    ASSERT_LT(label, 1u << 20);
    ASSERT_EQ(port_of_label(label), port);
  }
}

// Seen on the wire with Linux's rdma_rxe.
TEST(SourcePort, KnownPairs) {
  EXPECT_EQ(port_of_label(1), 49153);
  EXPECT_EQ(port_of_label(0x4000), 49153);
  EXPECT_EQ(port_of_label(0x333), 49971);
}

TEST(SourcePort, ChoicesAreDistinctReproducibleAndGrow) {
  const auto few = distinct_ports(7, 16), many = distinct_ports(7, 128);
  EXPECT_EQ(few, distinct_ports(7, 16));
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  EXPECT_EQ(std::set<std::uint16_t>(many.begin(), many.end()).size(), 128u);
  EXPECT_NE(few, distinct_ports(8, 16));
  EXPECT_EQ(distinct_ports(1, kPorts).size(), kPorts);
}

}  // namespace
}  // namespace weft::paths
