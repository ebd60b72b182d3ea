#include "tests/rig/soft_rnic/transport/broker_protocol.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "tests/rig/soft_rnic/wire/headers.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace weft::soft_rnic {
namespace {

// Without a broker nobody else hands out numbers; 17 is where rdma_rxe begins.
constexpr std::uint32_t kFirstQueuePairAlone = 17;

union DescriptorControl {
  cmsghdr header;
  std::uint8_t bytes[CMSG_SPACE(sizeof(int))];
};

Result<Loan> receive_loan(FileDescriptor connection) {
  Loan loan;
  DescriptorControl control{};
  iovec vector{&loan.terms, sizeof loan.terms};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  const ssize_t size = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (size != sizeof loan.terms || header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    return system_error("the broker lends no socket", size < 0 ? errno : EBUSY, {},
                        "at most " + std::to_string(kSlots) + " processes share a NIC");
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  loan.socket = FileDescriptor(descriptor);
  loan.connection = std::move(connection);
  return loan;
}

}  // namespace

UnixAddress broker_address(std::uint32_t nic_address) {
  UnixAddress address;
  address.name.sun_family = AF_UNIX;
  // A leading zero byte makes the name abstract: no file, and visible in this network namespace only.
  const int length =
      std::snprintf(address.name.sun_path + 1, sizeof address.name.sun_path - 1, "soft-rnic-%08x", ntohl(nic_address));
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  return address;
}

Result<void> send_loan(int connection, const LoanMessage& terms, int socket) {
  LoanMessage copy = terms;
  DescriptorControl control{};
  iovec vector{&copy, sizeof copy};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof socket);
  std::memcpy(CMSG_DATA(header), &socket, sizeof socket);
  if (sendmsg(connection, &message, MSG_NOSIGNAL) != sizeof copy) return system_error("cannot lend a socket", errno);
  return {};
}

Result<FileDescriptor> open_receive_socket(std::uint32_t nic_address, bool shared) {
  FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return system_error("cannot create a socket", errno);
  const int on = 1;
  if (shared) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  setsockopt(socket.get(), SOL_UDP, UDP_GRO, &on, sizeof on);
  if (setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer) != 0) {
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  }
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_addr.s_addr = nic_address;
  local.sin_port = htons(kRoceUdpPort);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0) {
    return system_error("cannot bind UDP port 4791", errno, {},
                        errno == EADDRINUSE ? "a second process of this host needs soft_rnic_broker" : "");
  }
  return socket;
}

Result<Loan> borrow_receive_socket(std::uint32_t nic_address) {
  FileDescriptor connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const UnixAddress broker = broker_address(nic_address);
  if (connection.valid() &&
      connect(connection.get(), reinterpret_cast<const sockaddr*>(&broker.name), broker.size) == 0) {
    return receive_loan(std::move(connection));
  }
  auto socket = open_receive_socket(nic_address, false);
  if (!socket) return socket.take_error();
  Loan loan;
  loan.socket = socket.take();
  loan.terms.first_queue_pair = kFirstQueuePairAlone;
  return loan;
}

}  // namespace weft::soft_rnic
