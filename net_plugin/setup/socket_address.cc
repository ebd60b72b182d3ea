#include "net_plugin/setup/socket_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "common/text/format.h"

namespace weft::setup {
namespace {

// Handshakes of all peers of a rank may arrive at once.
constexpr int kBacklog = 1024;

Result<FileDescriptor> make_socket(const sockaddr_storage& address) {
  FileDescriptor socket(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return system_error("cannot make a TCP socket", errno, address_text(address));
  return socket;
}

std::uint16_t port_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
                                       : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void set_port(sockaddr_storage& address, std::uint16_t port) {
  if (address.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
}

Result<FileDescriptor> listen_on(const sockaddr_storage& address, bool reuse) {
  auto socket = make_socket(address);
  if (!socket) return socket;
  // Connections that came through an earlier listener keep its port, and a range has few.
  const int on = 1;
  if (reuse) setsockopt(socket->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket->get(), reinterpret_cast<const sockaddr*>(&address), address_size(address)) != 0)
    return system_error("cannot bind", errno, address_with_port(address));
  if (listen(socket->get(), kBacklog) != 0) return system_error("cannot listen", errno, address_with_port(address));
  return socket;
}

Result<FileDescriptor> listen_within(sockaddr_storage& address, const settings::PortRange& range, std::uint64_t seed) {
  const std::uint32_t count = range.last - range.first + 1u;
  for (std::uint32_t i = 0; i < count; i++) {
    set_port(address, std::uint16_t(range.first + (seed + i) % count));
    auto socket = listen_on(address, true);
    if (socket || socket.error().code != EADDRINUSE) return socket;
  }
  return Error{text::format("no free TCP port in WEFT_PORT_RANGE {} on {}", settings::port_range_text(range),
                            address_text(address)),
               {},
               0,
               "each rank needs one for each connection that it is setting up: widen the range (ss -ltnp shows who "
               "has them)"};
}

// Signals of the host process may interrupt it.
bool writable_in(int descriptor, std::chrono::milliseconds limit) {
  const TimePoint end = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd wait{descriptor, POLLOUT, 0};
    const int ready = poll(&wait, 1, int(std::max<std::int64_t>(0, left.count())));
    if (ready >= 0 || errno != EINTR) return ready == 1;
  }
}

}  // namespace

socklen_t address_size(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family != AF_INET6) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
    return text;
  }
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof text);
  char interface[IF_NAMESIZE];
  const bool scoped = ipv6.sin6_scope_id != 0 && if_indextoname(ipv6.sin6_scope_id, interface);
  return scoped ? text::format("{}%{}", text, interface) : text;
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
}

std::string address_with_port(const sockaddr_storage& address) {
  const char* form = address.ss_family == AF_INET6 ? "[{}]:{}" : "{}:{}";
  return text::format(fmt::runtime(form), address_text(address), port_of(address));
}

Result<FileDescriptor> connect_socket(const sockaddr_storage& address) {
  auto socket = make_socket(address);
  if (!socket) return socket;
  const int on = 1;
  setsockopt(socket->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(socket->get(), reinterpret_cast<const sockaddr*>(&address), address_size(address)) != 0 &&
      errno != EINPROGRESS && errno != EINTR) {
    return system_error("cannot connect to the listener", errno, address_with_port(address));
  }
  return socket;
}

void send_and_close(const sockaddr_storage& address, const std::vector<std::byte>& bytes, int limit_ms) {
  auto socket = connect_socket(address);
  if (!socket) return;
  if (!writable_in(socket->get(), std::chrono::milliseconds(limit_ms))) return;
  // What can't be sent at once is lost: the peer then learns from its deadline.
  (void)!send(socket->get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

Result<FileDescriptor> listen_socket(sockaddr_storage* address, const settings::PortRange& range, std::uint64_t seed) {
  auto socket = range.given() ? listen_within(*address, range, seed) : listen_on(*address, false);
  if (!socket) return socket;
  socklen_t size = sizeof *address;
  if (getsockname(socket->get(), reinterpret_cast<sockaddr*>(address), &size) != 0) {
    return system_error("getsockname failed", errno, address_text(*address));
  }
  return socket;
}

}  // namespace weft::setup
