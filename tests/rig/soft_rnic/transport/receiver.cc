#include "tests/rig/soft_rnic/transport/receiver.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace weft::soft_rnic {

Receiver::Receiver() : memory_(kBatch * kDatagram) {
  for (std::size_t index = 0; index < kBatch; ++index) {
    vectors_[index] = {&memory_[index * kDatagram], kDatagram};
    prepare(index);
  }
}

void Receiver::prepare(std::size_t index) {
  msghdr& message = messages_[index].msg_hdr;
  message.msg_name = &sources_[index];
  message.msg_namelen = sizeof sources_[index];
  message.msg_iov = &vectors_[index];
  message.msg_iovlen = 1;
  message.msg_control = controls_[index].data();
  message.msg_controllen = controls_[index].size();
}

std::size_t Receiver::read(int socket) {
  // The kernel changed the headers that it filled last time; most reads of a polling application find nothing.
  for (std::size_t index = 0; index < datagrams_; ++index)
    prepare(index);
  const int read = recvmmsg(socket, messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
  datagrams_ = read > 0 ? static_cast<std::size_t>(read) : 0;
  return datagrams_;
}

std::span<const std::uint8_t> Receiver::datagram(std::size_t index) const {
  return {&memory_[index * kDatagram], messages_[index].msg_len};
}

std::size_t Receiver::segment_size(std::size_t index) const {
  const msghdr& message = messages_[index].msg_hdr;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  int segment = 0;
  if (header != nullptr && header->cmsg_level == SOL_UDP && header->cmsg_type == UDP_GRO) {
    std::memcpy(&segment, CMSG_DATA(header), sizeof segment);
  }
  return segment > 0 ? static_cast<std::size_t>(segment) : std::max<std::size_t>(messages_[index].msg_len, 1);
}

}  // namespace weft::soft_rnic
