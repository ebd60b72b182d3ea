// Packets of one queue pair on their way into the kernel: consecutive packets of one size go as one segmented datagram
// (UDP_SEGMENT), all datagrams in one sendmmsg. Payload is not copied here; it is read once for the ICRC and once by
// the kernel.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/rig/soft_rnic/protocol/packet_source.h"
#include "tests/rig/soft_rnic/wire/icrc.h"

namespace weft::soft_rnic {

// How the packets of a queue pair travel.
struct Path {
  Flow flow;
  int socket = -1;  // bound to the flow's source
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
};

class TransmitBatch {
 public:
  static constexpr std::size_t kCapacity = 128;

  TransmitBatch();

  std::size_t size() const { return size_; }
  bool full() const { return size_ == kCapacity; }
  void clear() { size_ = 0; }
  // Take a packet into the next place, then keep it. Only while not full.
  OutgoingPacket& next() { return packets_[size_]; }
  void keep() { ++size_; }
  const OutgoingPacket& operator[](std::size_t index) const { return packets_[index]; }

  // Hands the packets to the kernel, in order, and returns how many it took; fewer than size() means that the socket is
  // full. A packet that the kernel refuses for another reason (a route that has vanished) counts as taken, as it would
  // be lost on a wire.
  std::size_t send(const Path& path);

 private:
  static constexpr std::size_t kVectorsPerPacket = kMaxPieces + 2;  // headers, pieces, padding and ICRC
  static constexpr std::size_t kControlSize = CMSG_SPACE(sizeof(int)) * 2 + CMSG_SPACE(sizeof(std::uint16_t));

  // How many packets from `first` on can go as one datagram.
  std::size_t run_length(std::size_t first) const;
  void prepare(const Path& path, std::size_t first, std::size_t count, msghdr& message, std::uint8_t* control);
  void append(const Path& path, std::size_t index, std::uint16_t identification);

  std::vector<OutgoingPacket> packets_;
  std::vector<std::array<std::uint8_t, 3 + kIcrcSize>> trailers_;
  std::vector<iovec> vectors_;
  std::vector<mmsghdr> messages_;
  std::vector<std::array<std::uint8_t, kControlSize>> controls_;
  std::size_t size_ = 0;
  std::size_t vectors_used_ = 0;
};

}  // namespace weft::soft_rnic
