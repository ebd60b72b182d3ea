// Choosing a GID by content. The names F01 … are field reports of NCCL users (docs/net-plugin.md, "Choosing a GID").
#include "net_plugin/devices/gid.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace weft::devices {
namespace {

using testing::HasSubstr;

GidEntry entry(int index, const std::string& address, GidType type = GidType::roce_v2) {
  GidEntry out;
  out.index = index;
  out.type = type;
  const std::string text = address.find(':') == std::string::npos ? "::ffff:" + address : address;
  inet_pton(AF_INET6, text.c_str(), out.bytes.data());
  return out;
}
GidEntry v1(int index, const std::string& address) {
  return entry(index, address, GidType::roce_v1);
}
GidEntry empty(int index) {
  return entry(index, "::", GidType::unknown);
}

int chosen(const std::vector<GidEntry>& table, const GidWishes& wishes = {}) {
  auto result = choose_gid(table, wishes, "mlx5_0:1");
  return result.ok() ? result->index : -1;
}
std::string complaint(const std::vector<GidEntry>& table, const GidWishes& wishes = {}) {
  auto result = choose_gid(table, wishes, "mlx5_0:1");
  return result.ok() ? "no error" : result.error().text();
}

TEST(GidChoice, F01RoutableV4BeforeLinkLocal) {
  EXPECT_EQ(chosen({v1(0, "fe80::1"), entry(1, "fe80::1"), v1(2, "192.0.2.10"), entry(3, "192.0.2.10")}), 3);
}

TEST(GidChoice, F03EachPodItsOwnIndex) {
  EXPECT_EQ(chosen({v1(0, "fe80::1"), entry(1, "fe80::1"), v1(2, "192.0.2.10"), entry(3, "192.0.2.10")}), 3);
  EXPECT_EQ(
      chosen({empty(0), empty(1), empty(2), empty(3), v1(4, "fe80::2"), v1(5, "192.0.2.11"), entry(6, "192.0.2.11")}),
      6);
}

TEST(GidChoice, F05EmptyAndUnreadableSlotsArePassedOver) {
  EXPECT_EQ(chosen({empty(0), empty(1), empty(2), empty(3), v1(4, "fe80::1"), entry(5, "fe80::1"), v1(6, "192.0.2.12"),
                    entry(7, "192.0.2.12")}),
            7);
  EXPECT_EQ(chosen({entry(0, "192.0.2.9", GidType::unknown), entry(1, "192.0.2.12")}), 1);
}

TEST(GidChoice, F07UniqueLocalIpv6WhereThereIsNoIpv4) {
  EXPECT_EQ(chosen({v1(0, "fe80::1"), entry(1, "fe80::1"), v1(2, "fd00:db8:1::5"), entry(3, "fd00:db8:1::5")}), 3);
}

TEST(GidChoice, F08PrivateRangesAreNormal) {
  for (const char* address : {"10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1"}) {
    EXPECT_EQ(chosen({entry(0, "fe80::1"), entry(1, address)}), 1) << address;
  }
}

TEST(GidChoice, F10TheWholeTableIsSearched) {
  std::vector<GidEntry> table;
  for (int i = 0; i < 255; i++)
    table.push_back(empty(i));
  table.push_back(entry(255, "192.0.2.10"));
  EXPECT_EQ(chosen(table), 255);
}

TEST(GidChoice, F11ARangeThatMatchesNothingListsWhatThereIs) {
  GidWishes wishes;
  wishes.range_text = "198.51.100.0/24";
  wishes.range = *parse_range(wishes.range_text);
  EXPECT_THAT(complaint({entry(0, "192.0.2.10")}, wishes),
              HasSubstr("NCCL_IB_ADDR_RANGE=198.51.100.0/24 matches no RoCE v2 GID"));
  EXPECT_THAT(complaint({entry(0, "192.0.2.10")}, wishes), HasSubstr("192.0.2.10"));
  EXPECT_EQ(chosen({entry(0, "192.0.2.10"), entry(1, "198.51.100.7")}, wishes), 1);
  for (const char* wrong : {"198.51.100.0/33", "198.51.100/24", "2001:db8::/129", "x", "10.0.0.0/", "10.0.0.0/8x"}) {
    EXPECT_FALSE(parse_range(wrong).ok()) << wrong;
  }
}

TEST(GidChoice, F13Ipv4LinkLocalIsSkippedAndForcedIndicesAreChecked) {
  EXPECT_EQ(chosen({empty(0), entry(1, "169.254.3.1"), entry(2, "198.51.100.7")}), 2);
  GidWishes wishes;
  wishes.index = 300;
  EXPECT_THAT(complaint({entry(0, "192.0.2.1")}, wishes),
              HasSubstr("GID index 300 out of range (table has 1 entries)"));
  wishes.index = 0;
  EXPECT_THAT(complaint({v1(0, "192.0.2.1")}, wishes), HasSubstr("RoCE v1"));
  EXPECT_THAT(complaint({empty(0), entry(1, "192.0.2.1")}, wishes), HasSubstr("is empty here"));
}

TEST(GidChoice, NothingUsableIsAnErrorAndNeverIndexZero) {
  EXPECT_THAT(complaint({}), HasSubstr("no usable RoCE v2 GID"));
  EXPECT_THAT(complaint({entry(0, "fe80::1")}), HasSubstr("link-local addresses work inside one segment only"));
}

TEST(GidChoice, Ipv6WhenAskedFor) {
  GidWishes wishes;
  wishes.ipv6 = true;
  EXPECT_EQ(chosen({entry(0, "192.0.2.10"), entry(1, "2001:db8::1")}, wishes), 1);
  EXPECT_EQ(chosen({entry(0, "192.0.2.10")}, wishes), 0) << "a preference, not a demand";
}

// For any table: what is chosen is usable, and an IPv4 address is passed over only where there is none.
TEST(GidChoice, HoldsForRandomTables) {
  const std::vector<std::string> addresses = {"::",       "fe80::1",     "169.254.1.1", "192.0.2.1",
                                              "10.0.0.1", "2001:db8::1", "fd00::1"};
  std::mt19937 random(11);
  for (int run = 0; run < 5000; run++) {
    std::vector<GidEntry> table;
    for (int i = 0; i < int(random() % 12); i++)
      table.push_back(entry(i, addresses[random() % addresses.size()], GidType(random() % 3)));
    const auto usable = [](const GidEntry& one) {
      return !is_zero(one) && one.type == GidType::roce_v2 && !is_link_local(one);
    };
    bool any = false, any_v4 = false;
    for (const GidEntry& one : table) {
      any = any || usable(one);
      any_v4 = any_v4 || (usable(one) && is_ipv4(one));
    }
    const auto result = choose_gid(table, {}, "x:1");
    ASSERT_EQ(result.ok(), any);
    if (!any) continue;
    ASSERT_TRUE(usable(*result));
    ASSERT_EQ(is_ipv4(*result), any_v4);
  }
}

}  // namespace
}  // namespace weft::devices
