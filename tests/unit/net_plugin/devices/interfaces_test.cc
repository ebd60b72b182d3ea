// Which interface the handshake's TCP connections take. F-numbers: docs/field-reports.md.
#include "net_plugin/devices/interfaces.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weft::devices {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Interface interface(const std::string& name, const std::string& address, std::uint32_t scope = 0) {
  Interface out;
  out.name = name;
  out.loopback = name == "lo";
  if (address.find(':') == std::string::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(out.address);
    v4.sin_family = AF_INET;
    inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out.address);
    v6.sin6_family = AF_INET6;
    v6.sin6_scope_id = scope;
    inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr);
  }
  return out;
}

std::string chosen(const std::vector<Interface>& all, const std::string& names = "", const std::string& family = "") {
  const auto found = choose_interface(all, {names, family});
  return found ? found->name : found.error().text();
}

TEST(Interfaces, F80_ContainersBridgesAndTunnelsOnlyWhereNothingElseIs) {
  const std::vector<Interface> all = {interface("lo", "127.0.0.1"), interface("docker0", "172.17.0.1"),
                                      interface("veth1a2b", "fe80::1", 5), interface("ens1", "198.51.100.4")};
  EXPECT_EQ(chosen(all), "ens1");
  EXPECT_EQ(chosen({all[0], all[1], all[2]}), "docker0");
  for (const char* name : {"docker0", "br-12ab", "veth7", "virbr0", "cni0", "flannel.1", "cali12", "tun0", "ip6tnl0"})
    EXPECT_EQ(chosen({interface(name, "203.0.113.1"), all[3]}), "ens1") << name;
  EXPECT_EQ(chosen(all, "docker"), "docker0") << "asked for";
}

TEST(Interfaces, F81_AFilterThatOnlyExcludesDoesNotBringInLoopback) {
  const std::vector<Interface> all = {interface("lo", "127.0.0.1"), interface("docker0", "172.17.0.1"),
                                      interface("ens1", "198.51.100.4")};
  EXPECT_EQ(chosen(all, "^docker0"), "ens1");
  EXPECT_EQ(chosen({all[0], all[1], interface("eth1", "169.254.3.4")}, "^docker0"), "eth1");
  EXPECT_EQ(chosen({all[0]}, "^docker0"), "lo") << "nothing else is there";
  EXPECT_EQ(chosen(all, "lo"), "lo") << "asked for";
}

// Whatever the order and the filter: loopback never where another interface fits.
TEST(Interfaces, F81_LoopbackIsLastInEveryOrder) {
  std::vector<Interface> all = {interface("lo", "127.0.0.1"),       interface("lo", "::1"),
                                interface("docker0", "fe80::1", 3), interface("tun0", "169.254.1.1"),
                                interface("ens1", "198.51.100.4"),  interface("ens2", "2001:db8::4")};
  std::mt19937 random(81);
  for (int round = 0; round < 500; round++) {
    std::shuffle(all.begin(), all.end(), random);
    const std::vector<Interface> some(all.begin(), all.begin() + 1 + long(random() % all.size()));
    for (const char* names : {"", "^docker0", "^ens1", "^=ens1,ens2"}) {
      const auto found = choose_interface(some, {names, ""});
      const bool another = std::any_of(some.begin(), some.end(), [&](const Interface& one) {
        return !one.loopback && std::string(names).find(one.name) == std::string::npos;
      });
      EXPECT_FALSE(another && found->loopback) << names;
    }
  }
}

TEST(Interfaces, F82_LinkLocalAddressesOfBothFamiliesComeLast) {
  EXPECT_EQ(chosen({interface("ip6tnl0", "fe80::1", 2), interface("veth0", "2001:db8::2")}), "veth0");
  EXPECT_EQ(chosen({interface("ens1", "fe80::1", 2), interface("ens2", "192.0.2.1")}), "ens2");
  EXPECT_EQ(chosen({interface("usb0", "169.254.1.1"), interface("docker0", "172.17.0.1")}), "docker0");
  EXPECT_EQ(chosen({interface("lo", "127.0.0.1"), interface("ens1", "fe80::1", 2)}), "ens1");
}

// The peer's number of its interface means nothing here.
TEST(Interfaces, F82_TheScopeOfALinkLocalAddressIsThisHosts) {
  const std::vector<Interface> all = {interface("lo", "127.0.0.1"), interface("ens1", "198.51.100.4"),
                                      interface("docker0", "fe80::2", 3), interface("ens1", "fe80::3", 7)};
  const auto scope = [&](const char* address, const char* names) {
    const sockaddr_storage out = with_own_scope(interface("", address, 42).address, all, {names, ""});
    return reinterpret_cast<const sockaddr_in6&>(out).sin6_scope_id;
  };
  EXPECT_EQ(scope("fe80::99", ""), 7u);
  EXPECT_EQ(scope("fe80::99", "docker"), 3u);
  EXPECT_EQ(scope("fe80::99", "ens9"), 42u) << "no interface to take it from";
  EXPECT_EQ(scope("2001:db8::1", ""), 42u);
}

TEST(Interfaces, F83_WhatMatchesNothingIsShownAsItWasRead) {
  const std::vector<Interface> all = {interface("lo", "127.0.0.1"), interface("ens1f0", "198.51.100.4")};
  EXPECT_EQ(chosen(all, "=ens1f0"), "ens1f0");
  EXPECT_EQ(chosen(all, "ens1"), "ens1f0");
  EXPECT_THAT(chosen(all, "=ens1"),
              AllOf(HasSubstr("fits NCCL_SOCKET_IFNAME==ens1 (read as: exact match, 1 name \"ens1\")"),
                    HasSubstr("have: lo, ens1f0")));
  EXPECT_THAT(chosen(all, "eth,ib"), HasSubstr("(read as: prefix match, 2 names \"eth\", \"ib\")"));
  EXPECT_THAT(chosen(all, "^=lo,ens1f0"), HasSubstr("(read as: all but exact match, 2 names \"lo\", \"ens1f0\")"));
  EXPECT_THAT(chosen(all, "^lo,ens"), HasSubstr("(read as: all but prefix match, 2 names \"lo\", \"ens\")"));
  EXPECT_THAT(chosen(all, "", "AF_INET6"), AllOf(HasSubstr("with an address of AF_INET6"), Not(HasSubstr("read as"))));
}

TEST(Interfaces, F26_TheSubnetOfAGidIsThatOfItsInterface) {
  std::vector<Interface> all = {interface("ens1", "198.51.100.4"), interface("ens2", "2001:db8::4")};
  all[0].prefix_length = 24;
  all[1].prefix_length = 64;
  GidEntry gid;
  gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 4};
  EXPECT_EQ(prefix_length(all, gid), 24);
  gid.bytes[15] = 5;
  EXPECT_EQ(prefix_length(all, gid), 0);
  gid.bytes = {0x20, 0x01, 0x0d, 0xb8};
  gid.bytes[15] = 4;
  EXPECT_EQ(prefix_length(all, gid), 64);
}

// Every host has loopback, and its netmask is known.
TEST(Interfaces, F26_TheKernelsNetmasksAreRead) {
  GidEntry loopback;
  loopback.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  EXPECT_EQ(prefix_length(list_interfaces(), loopback), 8);
}

}  // namespace
}  // namespace weft::devices
