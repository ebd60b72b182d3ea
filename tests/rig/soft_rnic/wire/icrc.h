// The invariant CRC at the end of a RoCEv2 packet (RoCEv2 annex A17.3.3): CRC-32 (reflected polynomial 0xEDB88320, as
// in zlib) over eight bytes FF, the IPv4 header with TOS, TTL and checksum all ones, the UDP header with its checksum
// all ones, the BTH with its fifth byte all ones, and the rest up to the ICRC. Stored least significant byte first.
//
// The IPv4 identification is covered too, and a UDP socket neither sets nor sees it. What holds on Linux (README.md of
// this folder): with an unconnected socket and DF set it is 0, and k for the k-th segment of one UDP_SEGMENT call.
#pragma once

#include <cstdint>
#include <span>

namespace weft::soft_rnic {

// Who sends to whom. Addresses in network byte order as in sockaddr_in, ports in host byte order.
struct Flow {
  std::uint32_t source_address = 0;
  std::uint32_t destination_address = 0;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
};

// The ICRC of a packet whose parts lie apart: the transport headers first, then any number of pieces.
class Icrc {
 public:
  // `udp_payload_size` counts from the BTH to the end of the ICRC; `headers` begin with the BTH (at most 64 bytes).
  Icrc(const Flow& flow, std::uint16_t identification, std::size_t udp_payload_size,
       std::span<const std::uint8_t> headers);
  void add(std::span<const std::uint8_t> piece);
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_;
};

// The largest identification that a segmented send gives: UDP_SEGMENT cuts one call into at most 64 packets.
inline constexpr std::uint16_t kIdentifications = 64;

// Whether the last four bytes of `udp_payload` are its ICRC for any identification below kIdentifications. One pass
// over the bytes, whatever the identification was: CRC is linear, so the difference to the one computed for
// `likely_identification` tells which it was.
bool icrc_right(const Flow& flow, std::uint16_t likely_identification, std::span<const std::uint8_t> udp_payload);

}  // namespace weft::soft_rnic
