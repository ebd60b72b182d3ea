// TCP sockets of the handshake.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "common/settings/settings.h"
#include "net_plugin/setup/control.h"

namespace weft::setup {

// "192.0.2.10:4321", "[2001:db8::1]:4321", "[fe80::1%ens1]:4321".
std::string address_with_port(const sockaddr_storage& address);
// Without the port.
std::string address_text(const sockaddr_storage& address);
socklen_t address_size(const sockaddr_storage& address);
bool is_loopback(const sockaddr_storage& address);

// A non-blocking socket that has begun to connect.
Result<FileDescriptor> connect_socket(const sockaddr_storage& address);
// Connects, sends the bytes and closes, waiting no longer than `limit_ms`. Whether they arrive is not known; for a last
// word to a peer.
void send_and_close(const sockaddr_storage& address, const std::vector<std::byte>& bytes, int limit_ms);
// A non-blocking listener on the address with a port of the range, or of the kernel's choice where there is none; it is
// written to *address. The ports are tried from a place that `seed` decides, so that the processes of a host don't all
// begin with the same.
Result<FileDescriptor> listen_socket(sockaddr_storage* address, const settings::PortRange& range = {},
                                     std::uint64_t seed = 0);

}  // namespace weft::setup
