// Which network interface carries the handshake's TCP connections: NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY with
// NCCL's meaning. The choice is pure; list_interfaces() asks the kernel.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "common/result/result.h"
#include "net_plugin/devices/gid.h"

namespace weft::devices {

struct Interface {
  std::string name;
  sockaddr_storage address{};
  int prefix_length = 0;
  bool up = true;
  bool loopback = false;
};

struct InterfaceWishes {
  std::string names;   // NCCL_SOCKET_IFNAME: [^][=]name,…
  std::string family;  // NCCL_SOCKET_FAMILY: AF_INET, AF_INET6 or empty
};

std::vector<Interface> list_interfaces();

// Of the interface that has the GID's address, 24 for 192.0.2.10/24; 0 where none has.
int prefix_length(const std::vector<Interface>& interfaces, const GidEntry& gid);

// The first that fits; of several, loopback comes last, then link-local addresses, then what containers have. A filter
// that only excludes makes none of them better (F81).
Result<Interface> choose_interface(const std::vector<Interface>& interfaces, const InterfaceWishes& wishes);

// A link-local IPv6 address: it means something on one interface only.
bool has_scope(const sockaddr_storage& address);
// A peer tells the number of its own interface with such an address: with that of this host's interface instead.
sockaddr_storage with_own_scope(const sockaddr_storage& peer, const std::vector<Interface>& interfaces,
                                const InterfaceWishes& wishes);

}  // namespace weft::devices
