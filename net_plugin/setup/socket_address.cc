#include "net_plugin/setup/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <cerrno>

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

}  // namespace

socklen_t address_size(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  } else {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  }
  return text;
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
      errno != EINPROGRESS) {
    return system_error("cannot connect to the listener", errno, address_with_port(address));
  }
  return socket;
}

void send_and_close(const sockaddr_storage& address, const std::vector<std::byte>& bytes, int limit_ms) {
  auto socket = connect_socket(address);
  if (!socket) return;
  pollfd wait{socket->get(), POLLOUT, 0};
  if (poll(&wait, 1, limit_ms) != 1) return;
  // What can't be sent at once is lost: the peer then learns from its deadline.
  (void)!send(socket->get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

Result<FileDescriptor> listen_socket(sockaddr_storage* address) {
  auto socket = make_socket(*address);
  if (!socket) return socket;
  if (bind(socket->get(), reinterpret_cast<const sockaddr*>(address), address_size(*address)) != 0) {
    return system_error("cannot bind", errno, address_text(*address));
  }
  if (listen(socket->get(), kBacklog) != 0) return system_error("cannot listen", errno, address_text(*address));
  socklen_t size = sizeof *address;
  if (getsockname(socket->get(), reinterpret_cast<sockaddr*>(address), &size) != 0) {
    return system_error("getsockname failed", errno, address_text(*address));
  }
  return socket;
}

}  // namespace weft::setup
