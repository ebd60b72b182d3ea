// Which network interface carries the handshake's TCP connections: NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY with
// NCCL's meaning. The choice is pure; list_interfaces() asks the kernel.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::devices {

struct Interface {
  std::string name;
  sockaddr_storage address{};
  bool up = true;
  bool loopback = false;
};

struct InterfaceWishes {
  std::string names;   // NCCL_SOCKET_IFNAME: [^][=]name,…
  std::string family;  // NCCL_SOCKET_FAMILY: AF_INET, AF_INET6 or empty
};

std::vector<Interface> list_interfaces();

// The first that fits; without names, loopback, container bridges and link-local addresses only where nothing else is
// there.
Result<Interface> choose_interface(const std::vector<Interface>& interfaces, const InterfaceWishes& wishes);

}  // namespace weft::devices
