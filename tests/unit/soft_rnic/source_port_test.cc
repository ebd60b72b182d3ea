#include "tests/rig/soft_rnic/wire/source_port.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::soft_rnic {
namespace {

// Ports seen on the wire of a kernel with rdma_rxe (Linux 6.1).
TEST(SourcePort, IsTheKernels) {
  EXPECT_EQ(source_port_of(1, 17, 17), 49153);
  EXPECT_EQ(source_port_of(0x333, 17, 17), 49971);
  EXPECT_EQ(source_port_of(0, 17, 17), 49441);
  EXPECT_EQ(source_port_of(0, 18, 18), 49476);
  EXPECT_EQ(source_port_of(0, 19, 19), 49513);
}

TEST(SourcePort, FoldsTwentyBitsToFourteen) {
  EXPECT_EQ(source_port_of_flow_label(0x1), source_port_of_flow_label(0x4000));
  EXPECT_EQ(source_port_of_flow_label(0x4001), 0xc000);
}

TEST(SourcePort, EveryPortHasALabel) {
  std::set<std::uint16_t> ports;
  for (std::uint32_t label = 0; label < 0x4000; ++label)
    ports.insert(source_port_of_flow_label(label));
  EXPECT_EQ(ports.size(), 0x4000U);
  EXPECT_EQ(*ports.begin(), 0xc000);
  EXPECT_EQ(*ports.rbegin(), 0xffff);
}

TEST(SourcePort, WithoutLabelBothDirectionsHaveOnePort) {
  for (std::uint32_t left = 2; left < 0xffffff; left = left * 3 + 1) {
    for (std::uint32_t right = 5; right < 0xffffff; right = right * 7 + 2) {
      EXPECT_EQ(source_port_of(0, left, right), source_port_of(0, right, left));
    }
  }
}

}  // namespace
}  // namespace weft::soft_rnic
