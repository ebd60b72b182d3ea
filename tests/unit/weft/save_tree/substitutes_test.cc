// Stand-ins: what a choice goes by stays, what tells a host does not.
#include "bench/weft/save_tree/substitutes.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "net_plugin/devices/gid.h"

namespace weft::save_tree {
namespace {

using testing::HasSubstr;
using testing::Not;

Substitutes seeded(unsigned seed, Substitutes::Words words = {}) {
  return Substitutes(std::move(words), [random = std::mt19937(seed)]() mutable { return (random() & 1) != 0; });
}

// Turns over every bit that may be.
Substitutes contrary() {
  return Substitutes({}, [] { return true; });
}

Address address(const std::string& text) {
  Address out = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool ipv4 = text.find(':') == std::string::npos;
  EXPECT_EQ(inet_pton(ipv4 ? AF_INET : AF_INET6, text.c_str(), out.data() + (ipv4 ? 12 : 0)), 1) << text;
  return out;
}

devices::GidEntry gid(const Address& bytes) {
  return {0, bytes, devices::GidType::roce_v2};
}

int shared_bits(const Address& left, const Address& right) {
  int bits = 0;
  while (bits < 128 && (left[std::size_t(bits / 8)] ^ right[std::size_t(bits / 8)]) >> (7 - bits % 8) == 0)
    bits++;
  return bits;
}

bool in_range(const std::string& text, const std::string& range) {
  devices::GidWishes wishes;
  wishes.range = devices::parse_range(range).take();
  auto entry = gid(address(text));
  return devices::choose_gid({entry}, wishes, "mlx5_0:1").ok();
}

TEST(Substitutes, TheSameValueGetsTheSameStandIn) {
  Substitutes substitutes = seeded(1);
  const std::string text = "10.1.2.3 2001:db8::7 b8:59:9f:0c:6d:e4 b859:9f03:000c:6de4 enxb8599f0c6de4 10.1.2.3";
  EXPECT_EQ(substitutes.text(text), substitutes.text(text));
  EXPECT_NE(substitutes.text(text), seeded(2).text(text)) << "another tree has others";
  EXPECT_NE(Substitutes({}).text(text), Substitutes({}).text(text));
}

TEST(Substitutes, AddressesShareAsManyBitsAsBefore) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 20; seed++) {
    Substitutes substitutes = seeded(seed);
    for (int pair = 0; pair < 50; pair++) {
      Address left = address(pair % 2 == 0 ? "198.51.100.7" : "2001:db8:5:6:7:8:9:a");
      const int first = pair % 2 == 0 ? 96 : 0;
      Address right = left;
      const int differs = first + int(random() % unsigned(128 - first));
      for (int bit = differs; bit < 128; bit++) {
        if (bit == differs || random() % 2 == 0) right[std::size_t(bit / 8)] ^= std::uint8_t(0x80 >> bit % 8);
      }
      EXPECT_EQ(shared_bits(substitutes.address(left), substitutes.address(right)), shared_bits(left, right));
    }
  }
}

TEST(Substitutes, KindsOfAddressesStay) {
  const std::vector<std::string> ranges = {"10.0.0.0/8",     "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12",
                                           "192.168.0.0/16", "224.0.0.0/4",   "fc00::/7",    "2000::/3"};
  for (const char* text : {"10.1.2.3", "11.1.2.3", "100.64.1.1", "100.128.1.1", "127.0.0.1", "128.0.0.1", "172.16.0.1",
                           "172.32.0.1", "192.168.3.4", "192.169.3.4", "8.8.8.8", "224.1.1.1", "198.51.100.1",
                           "2001:db8::1", "fd12:3456::1", "fc00::1"}) {
    for (unsigned seed = 0; seed < 20; seed++) {
      const std::string made = seeded(seed).text(text);
      EXPECT_EQ(devices::is_ipv4(gid(address(text))), devices::is_ipv4(gid(address(made))));
      EXPECT_FALSE(devices::is_link_local(gid(address(made)))) << text << " became " << made;
      for (const std::string& range : ranges)
        EXPECT_EQ(in_range(text, range), in_range(made, range)) << text << " became " << made << ", " << range;
    }
  }
  Substitutes substitutes = contrary();
  EXPECT_TRUE(devices::is_link_local(gid(substitutes.address(address("169.254.3.4")))));
  EXPECT_EQ(substitutes.address(Address{}), Address{});
  EXPECT_EQ(substitutes.text("::1"), "::1");
  EXPECT_EQ(substitutes.text("10.1.2.3"), "10.254.253.252");
}

TEST(Substitutes, ARangeHoldsTheAddressesThatItHeld) {
  const std::vector<std::string> addresses = {"10.1.2.3",      "10.1.3.3",     "10.1.255.1",    "10.2.0.1",
                                              "198.51.100.9",  "198.51.101.9", "2001:db8:1::1", "2001:db8:1:1::1",
                                              "2001:db8:2::1", "fd00:1::1"};
  for (const char* range : {"10.1.2.0/24", "10.1.0.0/16", "10.1.2.3/16", "10.1.2.3", "198.51.100.0/23",
                            "198.51.100.0/24", "2001:db8:1::/48", "2001:db8:1:1::/64", "2001:db8::/32", "fd00::/8"}) {
    for (unsigned seed = 0; seed < 20; seed++) {
      Substitutes substitutes = seeded(seed);
      const std::string made = substitutes.text(range);
      for (const std::string& text : addresses)
        EXPECT_EQ(in_range(text, range), in_range(substitutes.text(text), made)) << text << " in " << range;
    }
  }
  EXPECT_EQ(contrary().text("10.1.2.3/16"), "10.254.0.0/16") << "the bits behind a range say nothing";
}

TEST(Substitutes, AnIdentifierMadeFromAMacAddressIsMadeFromItsStandIn) {
  for (unsigned seed = 0; seed < 20; seed++) {
    Substitutes substitutes = seeded(seed);
    const std::string mac = substitutes.text("b8:59:9f:0c:6d:e4");
    std::array<unsigned, 6> bytes{};
    ASSERT_EQ(
        std::sscanf(mac.c_str(), "%x:%x:%x:%x:%x:%x", &bytes[0], &bytes[1], &bytes[2], &bytes[3], &bytes[4], &bytes[5]),
        6);
    EXPECT_EQ(bytes[0] & 3u, 0u) << "neither a group's nor a local one";
    for (const char* prefix : {"fe80::", "2001:db8:1:2:", "fd00:1:2:3:"}) {
      const Address made = substitutes.address(address(std::string(prefix) + "ba59:9fff:fe0c:6de4"));
      EXPECT_EQ(made[8], bytes[0] ^ 2u);
      EXPECT_EQ(made[11], 0xff);
      EXPECT_EQ(made[12], 0xfe);
      EXPECT_EQ(made[15], bytes[5]);
    }
    EXPECT_EQ(substitutes.text("enxb8599f0c6de4").substr(3).substr(0, 2), mac.substr(0, 2));
  }
  EXPECT_THAT(seeded(1).text("fe80::ba59:9fff:fe0c:6de4"), testing::StartsWith("fe80::"));
}

TEST(Substitutes, NamesKeepTheirBeginnings) {
  Substitutes substitutes = seeded(3);
  const std::string whole = substitutes.text("rocexb8599f03000c6de4");
  EXPECT_EQ(whole.size(), std::string("rocexb8599f03000c6de4").size());
  EXPECT_EQ(substitutes.text("rocexb8599f"), whole.substr(0, 11)) << "as NCCL_IB_HCA may name it";
  EXPECT_EQ(substitutes.text("^rocexb8599f:1"), "^" + whole.substr(0, 11) + ":1");
  EXPECT_EQ("rocex" + substitutes.guid("b8599f03000c6de4"), whole);
}

TEST(Substitutes, WhatIsNothingOfAHostStays) {
  for (const char* text :
       {"=mlx5_0:1,mlx5_bond_0", "mlx5", "RoCE v2", "IB/RoCE v1", "4: RNIC", "Ethernet", "0000:41:00.0",
        "/sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0", "535.104.12", "eth0", "bond0", "AF_INET6", "-1", "106"}) {
    EXPECT_EQ(contrary().text(text), text);
  }
  EXPECT_EQ(contrary().guid("0000000000000000"), "0000000000000000");
}

TEST(Substitutes, GivenNamesAreReplaced) {
  const auto text = [](const std::string& host, const std::string& original) {
    return seeded(1, {{host, "host"}, {"", "nothing"}}).text(original);
  };
  EXPECT_EQ(text("gpu-node-17", "gpu-node-17_mlx5_0 at gpu-node-17"), "host_mlx5_0 at host");
  EXPECT_EQ(text("ib", "ib0 ib libibverbs"), "ib0 host libibverbs") << "a short one only where it stands alone";
}

TEST(Substitutes, EveryFormOfAValueIsFound) {
  const std::string made = contrary().text(
      "have: GID[0] = 10.1.2.3 (RoCE v2), 2001:db8::77: b8-59-9f-0c-6d-e4, fe80:0000:0000:0000:ba59:9fff:fe0c:6de4; "
      "::ffff:10.1.2.3.");
  for (const char* part : {"10.1.2.3", "db8", "6de4", "6d-e4", "ba59"})
    EXPECT_THAT(made, Not(HasSubstr(part)));
  EXPECT_THAT(made, HasSubstr("have: GID[0] = 10.254.253.252 (RoCE v2), "));
  EXPECT_THAT(made, HasSubstr("::ffff:10.254.253.252."));
}

}  // namespace
}  // namespace weft::save_tree
