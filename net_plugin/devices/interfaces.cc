#include "net_plugin/devices/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
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
};

bool is_link_local(const Interface& interface) {
  if (interface.address.ss_family == AF_INET6) {
    return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(interface.address).sin6_addr);
  }
  const std::uint32_t address = ntohl(reinterpret_cast<const sockaddr_in&>(interface.address).sin_addr.s_addr);
  return address >> 16 == 0xa9fe;  // 169.254/16
}

// Smaller is better.
int reluctance(const Interface& interface) {
  const bool bridge = interface.name.rfind("docker", 0) == 0 || interface.name.rfind("virbr", 0) == 0 ||
                      interface.name.rfind("veth", 0) == 0;
  return (interface.loopback ? 4 : 0) + (bridge ? 2 : 0) + (is_link_local(interface) ? 1 : 0);
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
    interface.up = (entry->ifa_flags & IFF_UP) != 0;
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    out.push_back(interface);
  }
  return out;
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
  return Error{text::format("no interface that is up{}{}",
                            wishes.names.empty() ? "" : text::format(" fits NCCL_SOCKET_IFNAME={}", wishes.names),
                            wishes.family.empty() ? "" : text::format(" with an address of {}", wishes.family)),
               "handshake", 0, "have: " + (names.empty() ? "none" : text::join(names))};
}

}  // namespace weft::devices
