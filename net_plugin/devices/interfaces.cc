#include "net_plugin/devices/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "common/text/format.h"
#include "common/text/nearest.h"

namespace weft::devices {
namespace {

struct NamePatterns {
  bool exclude = false;
  bool whole = false;
  std::vector<std::string> names;

  explicit NamePatterns(std::string text) {
    exclude = take(text, '^');
    whole = take(text, '=');
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t comma = std::min(text.find(',', start), text.size());
      if (comma > start) names.push_back(text.substr(start, comma - start));
      start = comma + 1;
    }
  }

  static bool take(std::string& text, char modifier) {
    if (text.empty() || text[0] != modifier) return false;
    text.erase(0, 1);
    return true;
  }

  bool takes(const std::string& name) const {
    const bool any = std::any_of(names.begin(), names.end(), [&](const std::string& pattern) {
      return whole ? name == pattern : name.rfind(pattern, 0) == 0;
    });
    return any != exclude;
  }

  // What was read out of the text, for whoever meant something else by it (F83).
  std::string read_as() const {
    return text::format("{}{}, {} name{}{}", exclude ? "all but " : "", whole ? "exact match" : "prefix match",
                        names.size(), names.size() == 1 ? "" : "s",
                        names.empty() ? "" : text::format(" \"{}\"", text::join(names, "\", \"")));
  }
};

const sockaddr_in6& ipv6(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in6&>(address);
}

bool is_link_local(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) return has_scope(address);
  return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 16 == 0xa9fe;  // 169.254/16
}

// Bridges and tunnels of containers and virtual machines: the same address on every host, or none that others reach.
bool is_of_containers(const std::string& name) {
  constexpr std::array kPrefixes = {"docker", "br-",  "veth", "virbr", "cni", "flannel", "cali",
                                    "kube",   "vnet", "tun",  "tap",   "sit", "ip6tnl",  "gre"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
}

// Smaller is better.
int reluctance(const Interface& interface) {
  // What the address is good for outranks what the name says (F82).
  return (interface.loopback ? 4 : 0) + (is_link_local(interface.address) ? 2 : 0) +
         (is_of_containers(interface.name) ? 1 : 0);
}

int ones(const sockaddr* netmask) {
  if (!netmask) return 0;
  if (netmask->sa_family != AF_INET6)
    return std::popcount(reinterpret_cast<const sockaddr_in*>(netmask)->sin_addr.s_addr);
  int bits = 0;
  for (const unsigned char byte : reinterpret_cast<const sockaddr_in6*>(netmask)->sin6_addr.s6_addr)
    bits += std::popcount(byte);
  return bits;
}

bool is_address_of(const GidEntry& gid, const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) return std::memcmp(gid.bytes.data(), &ipv6(address).sin6_addr, 16) == 0;
  const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  return is_ipv4(gid) && std::memcmp(gid.bytes.data() + 12, &ipv4, sizeof ipv4) == 0;
}

}  // namespace

std::vector<Interface> list_interfaces() {
  std::vector<Interface> out;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return out;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Interface interface;
    interface.name = entry->ifa_name;
    std::memcpy(&interface.address, entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    interface.prefix_length = ones(entry->ifa_netmask);
    interface.up = (entry->ifa_flags & IFF_UP) != 0;
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    out.push_back(interface);
  }
  return out;
}

int prefix_length(const std::vector<Interface>& interfaces, const GidEntry& gid) {
  const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&](const Interface& interface) { return is_address_of(gid, interface.address); });
  return found == interfaces.end() ? 0 : found->prefix_length;
}

Result<Interface> choose_interface(const std::vector<Interface>& interfaces, const InterfaceWishes& wishes) {
  const NamePatterns patterns(wishes.names);
  const Interface* best = nullptr;
  std::vector<std::string> names;
  for (const Interface& interface : interfaces) {
    if (std::find(names.begin(), names.end(), interface.name) == names.end()) names.push_back(interface.name);
    if (!interface.up) continue;
    if (wishes.family == "AF_INET" && interface.address.ss_family != AF_INET) continue;
    if (wishes.family == "AF_INET6" && interface.address.ss_family != AF_INET6) continue;
    if (!wishes.names.empty() && !patterns.takes(interface.name)) continue;
    if (!best || reluctance(interface) < reluctance(*best)) best = &interface;
  }
  if (best) return *best;
  const std::string asked = text::format(" fits NCCL_SOCKET_IFNAME={} (read as: {})", wishes.names, patterns.read_as());
  return Error{text::format("no interface that is up{}{}", wishes.names.empty() ? "" : asked,
                            wishes.family.empty() ? "" : text::format(" with an address of {}", wishes.family)),
               "handshake", 0, "have: " + (names.empty() ? "none" : text::join(names))};
}

bool has_scope(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ipv6(address).sin6_addr);
}

sockaddr_storage with_own_scope(const sockaddr_storage& peer, const std::vector<Interface>& interfaces,
                                const InterfaceWishes& wishes) {
  if (!has_scope(peer)) return peer;
  std::vector<Interface> scoped;
  for (const Interface& interface : interfaces) {
    if (has_scope(interface.address)) scoped.push_back(interface);
  }
  const auto chosen = choose_interface(scoped, wishes);
  if (!chosen) return peer;
  sockaddr_storage out = peer;
  reinterpret_cast<sockaddr_in6&>(out).sin6_scope_id = ipv6(chosen->address).sin6_scope_id;
  return out;
}

}  // namespace weft::devices
