#include "tests/rig/soft_rnic/transport/send_sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "tests/rig/soft_rnic/wire/headers.h"

namespace weft::soft_rnic {
namespace {

// Room for the windows of some queue pairs while a shaped link of the host drains; the kernel may grant less.
constexpr int kSendBuffer = 8 << 20;

sockaddr_in endpoint(std::uint32_t address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = address;
  result.sin_port = htons(port);
  return result;
}

}  // namespace

Result<std::shared_ptr<FileDescriptor>> SendSockets::open(std::uint16_t source_port) {
  std::weak_ptr<FileDescriptor>& known = sockets_[source_port];
  if (auto socket = known.lock()) return socket;

  const std::string where = "UDP source port " + std::to_string(source_port);
  auto socket = std::make_shared<FileDescriptor>(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket->valid()) return system_error("cannot create a socket", errno, where);
  const int on = 1;
  const int discover = IP_PMTUDISC_DO;
  setsockopt(socket->get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  setsockopt(socket->get(), IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
  if (setsockopt(socket->get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBuffer, sizeof kSendBuffer) != 0) {
    setsockopt(socket->get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  }
  const sockaddr_in local = endpoint(address_, source_port);
  if (bind(socket->get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0) {
    return system_error("cannot bind", errno, where, "another program of this host may use the port");
  }
  known = socket;
  return socket;
}

Result<void> SendSockets::check_route(std::uint32_t peer) const {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in local = endpoint(address_, 0);
  const sockaddr_in remote = endpoint(peer, kRoceUdpPort);
  if (!socket.valid() || bind(socket.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0 ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&remote), sizeof remote) != 0) {
    return system_error("no way to the peer", errno);
  }
  return {};
}

}  // namespace weft::soft_rnic
