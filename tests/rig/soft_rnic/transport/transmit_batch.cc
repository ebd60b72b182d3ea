#include "tests/rig/soft_rnic/transport/transmit_batch.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace weft::soft_rnic {
namespace {

// The largest segmented datagram: 64 KiB of IPv4 packet less its headers, and at most 64 segments (UDP_MAX_SEGMENTS).
constexpr std::size_t kMaxDatagram = 65000;
constexpr std::size_t kMaxSegments = kIdentifications;

template <class T>
cmsghdr* put_control(cmsghdr* place, int level, int type, T value) {
  place->cmsg_level = level;
  place->cmsg_type = type;
  place->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(place), &value, sizeof value);
  return reinterpret_cast<cmsghdr*>(reinterpret_cast<std::uint8_t*>(place) + CMSG_SPACE(sizeof value));
}

std::span<const std::uint8_t> bytes_of(const Piece& piece) {
  return {piece.data, piece.size};
}

}  // namespace

TransmitBatch::TransmitBatch()
    : packets_(kCapacity),
      trailers_(kCapacity),
      vectors_(kCapacity * kVectorsPerPacket),
      messages_(kCapacity),
      controls_(kCapacity) {}

std::size_t TransmitBatch::run_length(std::size_t first) const {
  const std::size_t segment = packets_[first].udp_payload_size();
  std::size_t total = segment;
  std::size_t count = 1;
  // All segments have the size of the first; only the last may be shorter.
  while (first + count < size_ && count < kMaxSegments) {
    const std::size_t size = packets_[first + count].udp_payload_size();
    if (size > segment || total + size > kMaxDatagram) break;
    total += size;
    ++count;
    if (size < segment) break;
  }
  return count;
}

void TransmitBatch::append(const Path& path, std::size_t index, std::uint16_t identification) {
  OutgoingPacket& packet = packets_[index];
  auto& trailer = trailers_[index];
  const std::size_t pad = packet.pad();
  std::fill_n(trailer.begin(), pad, 0);

  Icrc icrc(path.flow, identification, packet.udp_payload_size(), {packet.header.data(), packet.header_size});
  vectors_[vectors_used_++] = {packet.header.data(), packet.header_size};
  for (std::uint32_t piece = 0; piece < packet.payload.count; ++piece) {
    icrc.add(bytes_of(packet.payload.pieces[piece]));
    vectors_[vectors_used_++] = {packet.payload.pieces[piece].data, packet.payload.pieces[piece].size};
  }
  icrc.add({trailer.data(), pad});
  const std::uint32_t value = icrc.value();
  for (std::size_t byte = 0; byte < kIcrcSize; ++byte) {
    trailer[pad + byte] = static_cast<std::uint8_t>(value >> 8 * byte);
  }
  vectors_[vectors_used_++] = {trailer.data(), pad + kIcrcSize};
}

void TransmitBatch::prepare(const Path& path, std::size_t first, std::size_t count, msghdr& message,
                            std::uint8_t* control) {
  iovec* vectors = &vectors_[vectors_used_];
  const std::size_t used_before = vectors_used_;
  for (std::size_t segment = 0; segment < count; ++segment) {
    append(path, first + segment, static_cast<std::uint16_t>(segment));
  }
  message.msg_iov = vectors;
  message.msg_iovlen = vectors_used_ - used_before;
  message.msg_control = control;
  auto* place = reinterpret_cast<cmsghdr*>(control);
  place = put_control(place, IPPROTO_IP, IP_TOS, static_cast<int>(path.traffic_class));
  place = put_control(place, IPPROTO_IP, IP_TTL, static_cast<int>(path.hop_limit));
  if (count > 1) {
    place = put_control(place, SOL_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(packets_[first].udp_payload_size()));
  }
  message.msg_controllen = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(place) - control);
}

std::size_t TransmitBatch::send(const Path& path) {
  sockaddr_in destination{};
  destination.sin_family = AF_INET;
  destination.sin_addr.s_addr = path.flow.destination_address;
  destination.sin_port = htons(path.flow.destination_port);

  std::array<std::size_t, kCapacity> run;
  std::size_t messages = 0;
  vectors_used_ = 0;
  for (std::size_t first = 0; first < size_; first += run[messages++]) {
    run[messages] = run_length(first);
    msghdr& message = messages_[messages].msg_hdr;
    message = {};
    message.msg_name = &destination;
    message.msg_namelen = sizeof destination;
    prepare(path, first, run[messages], message, controls_[messages].data());
  }

  std::size_t done = 0;
  std::size_t packets = 0;
  while (done < messages) {
    int taken = sendmmsg(path.socket, &messages_[done], static_cast<unsigned>(messages - done), 0);
    if (taken < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == ENOBUFS) break;
      taken = 1;
    }
    for (; taken > 0; --taken)
      packets += run[done++];
  }
  return packets;
}

}  // namespace weft::soft_rnic
