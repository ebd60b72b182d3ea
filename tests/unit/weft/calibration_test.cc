#include "bench/weft/figures/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace weft::figures {
namespace {

TEST(Calibration, TheGatesLastLineIsItsResult) {
  auto gate = parse_gate("a warning\n{\"one_mbps\":96.6,\"eight_mbps\":97.1,\"ratio\":0.994}\n");
  ASSERT_TRUE(gate.ok());
  EXPECT_DOUBLE_EQ(gate->ratio, 0.994);
  EXPECT_DOUBLE_EQ(gate->eight_mbps, 97.1);
  EXPECT_FALSE(parse_gate("soft_rnic_gate: no device\n").ok());
  EXPECT_FALSE(parse_gate("").ok());
}

TEST(Calibration, TheCeilingsLastRowIsItsResult) {
  auto known = parse_ceiling(
      "on the emulated NIC\n   MTU      GB/s   us median      us p95\n  4096      1.25        12.5        30.0\n");
  ASSERT_TRUE(known.ok());
  EXPECT_DOUBLE_EQ(known->gigabytes_per_second, 1.25);
  EXPECT_DOUBLE_EQ(known->one_way_us, 12.5);
  EXPECT_FALSE(parse_ceiling("   MTU      GB/s\n").ok());
  EXPECT_FALSE(parse_ceiling("  1024      1.25        12.5        30.0\n").ok());
}

TEST(Calibration, AToolThatIsNotBuiltIsNamedWithTheRemedy) {
  auto known = ceiling("/no/such/build/bin/rig");
  ASSERT_FALSE(known.ok());
  EXPECT_EQ(known.error().code, ENOENT);
  EXPECT_THAT(known.error().text(), testing::HasSubstr("/no/such/build/rig/bin/soft_rnic_ceiling"));
}

}  // namespace
}  // namespace weft::figures
