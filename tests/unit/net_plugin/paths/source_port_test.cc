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

TEST(SourcePort, ASequenceIsDistinctAndReproducible) {
  PortSequence one(7), same(7), other(8);
  std::vector<std::uint16_t> all;
  for (int i = 0; i < 8; i++) {
    const auto ports = one.take(16);
    ASSERT_EQ(ports.size(), 16u);
    EXPECT_EQ(ports, same.take(16));
    EXPECT_NE(ports, other.take(16));
    all.insert(all.end(), ports.begin(), ports.end());
  }
  EXPECT_EQ(std::set<std::uint16_t>(all.begin(), all.end()).size(), 128u);
  EXPECT_EQ(PortSequence(7).take(128), all) << "however many are taken at a time";
}

TEST(SourcePort, ASequenceBeginsAgainWhereFewerAreLeft) {
  PortSequence sequence(1);
  const auto all = sequence.take(kPorts);
  EXPECT_EQ(std::set<std::uint16_t>(all.begin(), all.end()).size(), kPorts);
  EXPECT_EQ(sequence.take(2), (std::vector<std::uint16_t>{all[0], all[1]}));
  PortSequence uneven(1);
  for (std::size_t taken = 0; taken + 24 <= kPorts; taken += 24)
    uneven.take(24);
  EXPECT_EQ(uneven.take(24), PortSequence(1).take(24));
}

}  // namespace
}  // namespace weft::paths
