// Takes packets from a NIC's receive socket: many datagrams per system call (recvmmsg), each possibly a train of
// packets that the kernel left together (UDP_GRO).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::soft_rnic {

struct Arrival {
  std::uint32_t source_address = 0;  // network byte order
  std::uint16_t source_port = 0;
  std::uint16_t index = 0;  // place in its train, 0 where it came alone
  std::span<const std::uint8_t> udp_payload;
};

class Receiver {
 public:
  Receiver();

  // Reads what is there, up to a batch; returns the number of datagrams, 0 where the socket is empty.
  std::size_t read(int socket);
  // Calls `visit(Arrival)` for each packet of the batch read last.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (std::size_t index = 0; index < datagrams_; ++index) {
      const std::span<const std::uint8_t> bytes = datagram(index);
      const std::size_t segment = segment_size(index);
      Arrival arrival;
      arrival.source_address = sources_[index].sin_addr.s_addr;
      arrival.source_port = ntohs(sources_[index].sin_port);
      for (std::size_t offset = 0; offset < bytes.size(); offset += segment) {
        arrival.udp_payload = bytes.subspan(offset, std::min(segment, bytes.size() - offset));
        visit(arrival);
        ++arrival.index;
      }
    }
  }
  bool more_likely() const { return datagrams_ == kBatch; }

 private:
  static constexpr std::size_t kBatch = 32;
  static constexpr std::size_t kDatagram = 65536;

  void prepare(std::size_t index);
  std::span<const std::uint8_t> datagram(std::size_t index) const;
  // The size of every packet of a datagram but the last; the whole size where it is no train.
  std::size_t segment_size(std::size_t index) const;

  std::vector<std::uint8_t> memory_;
  std::array<mmsghdr, kBatch> messages_{};
  std::array<iovec, kBatch> vectors_{};
  std::array<sockaddr_in, kBatch> sources_{};
  std::array<std::array<std::uint8_t, CMSG_SPACE(sizeof(int))>, kBatch> controls_{};
  std::size_t datagrams_ = 0;
};

}  // namespace weft::soft_rnic
