// UDP sockets to send from, one per source port of a NIC. Several processes of a host may send from one port: the
// sockets share it (SO_REUSEPORT, same user). Nothing is ever received on them. Unconnected and with DF set, so that
// the IPv4 identification is known (wire/icrc.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "common/result/result.h"
#include "tests/rig/soft_rnic/transport/file_descriptor.h"

namespace weft::soft_rnic {

class SendSockets {
 public:
  // `address` is the NIC's, in network byte order.
  explicit SendSockets(std::uint32_t address) : address_(address) {}

  // The socket bound to this port; kept as long as somebody holds the pointer.
  Result<std::shared_ptr<FileDescriptor>> open(std::uint16_t source_port);

  // Whether packets from this NIC could leave for `peer`: an errno such as ENETUNREACH where there is no route.
  Result<void> check_route(std::uint32_t peer) const;

 private:
  std::uint32_t address_;
  std::map<std::uint16_t, std::weak_ptr<FileDescriptor>> sockets_;
};

}  // namespace weft::soft_rnic
