// When two NICs are on different rails, and what is said of it.
#include "net_plugin/devices/rails.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace weft::devices {
namespace {

using testing::HasSubstr;

RailEnd ipv4(const std::string& device, std::array<std::uint8_t, 4> address, int prefix_length) {
  RailEnd out;
  out.device = device;
  out.gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, address[0], address[1], address[2], address[3]};
  out.prefix_length = prefix_length;
  return out;
}

TEST(Rails, F26_BothEndsAreNamedWithDeviceAddressAndSubnet) {
  const RailEnd own = ipv4("mlx5_0:1", {192, 0, 2, 10}, 24);
  EXPECT_EQ(
      describe_rails(own, ipv4("mlx5_3:1", {198, 51, 100, 7}, 24)),
      "mlx5_0:1 192.0.2.10/24 and mlx5_3:1 198.51.100.7/24 are in different subnets, so on different rails; where "
      "rails are not routed to each other set NCCL_CROSS_NIC=0");
  EXPECT_EQ(describe_rails(own, ipv4("mlx5_3:1", {192, 0, 2, 11}, 24)),
            "mlx5_0:1 192.0.2.10/24 and mlx5_3:1 192.0.2.11/24 are in the same subnet, so on one rail");
  EXPECT_EQ(describe_rails(ipv4("mlx5_0:1", {192, 0, 2, 10}, 0), ipv4("mlx5_3:1", {198, 51, 100, 7}, 0)),
            "mlx5_0:1 192.0.2.10 and mlx5_3:1 198.51.100.7 (their subnets are not known)");
  EXPECT_THAT(describe_rails(own, ipv4("mlx5_3:1", {198, 51, 100, 7}, 0)), HasSubstr("198.51.100.7 are in different"));
}

// Against the addresses as numbers.
TEST(Rails, F26_SubnetsAreCompared) {
  std::mt19937 random(26);
  for (int round = 0; round < 20000; round++) {
    const std::uint32_t left = random(), right = left ^ (random() >> (random() % 32));
    const int left_length = 1 + int(random() % 32), right_length = 1 + int(random() % 32);
    const auto end = [](std::uint32_t address, int length) {
      return ipv4(
          "x",
          {std::uint8_t(address >> 24), std::uint8_t(address >> 16), std::uint8_t(address >> 8), std::uint8_t(address)},
          length);
    };
    const auto differ = [&](int length) { return ((left ^ right) >> (32 - length)) != 0; };
    EXPECT_EQ(in_different_subnets(end(left, left_length), end(right, right_length)),
              differ(left_length) || differ(right_length));
  }
}

}  // namespace
}  // namespace weft::devices
