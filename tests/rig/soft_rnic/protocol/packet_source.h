// What the transmit side pulls packets from: the requester and the responder of a queue pair.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/rig/soft_rnic/protocol/time.h"
#include "tests/rig/soft_rnic/protocol/work_request.h"
#include "tests/rig/soft_rnic/wire/headers.h"

namespace weft::soft_rnic {

// A packet to be sent: headers by value, payload by reference to the application's memory.
struct OutgoingPacket {
  std::array<std::uint8_t, kMaxHeaderSize> header{};
  std::size_t header_size = 0;
  PieceList payload;
  std::uint32_t payload_size = 0;
  bool retransmitted = false;

  std::uint8_t pad() const { return padding_of(payload_size); }
  // From the BTH to the end of the ICRC.
  std::size_t udp_payload_size() const { return header_size + payload_size + pad() + kIcrcSize; }
};

// Packets are first taken, any number of them, and then committed: the network may have accepted only some, and the
// rest must come again from the next take() on.
class PacketSource {
 public:
  // Fills in the next packet; false when there is none to send now.
  virtual bool take(OutgoingPacket& packet) = 0;
  // The first `sent` of the packets taken since the last commit have left.
  virtual void commit(std::size_t sent, Nanoseconds now) = 0;

 protected:
  ~PacketSource() = default;
};

}  // namespace weft::soft_rnic
