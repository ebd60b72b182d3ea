#include "net_plugin/transfer/wire.h"

namespace weft::transfer {

std::uint32_t pack(const Immediate& immediate) {
  return std::uint32_t(immediate.message) << 16 | std::uint32_t(immediate.piece) << 8 |
         std::uint32_t(immediate.pieces - 1);
}

std::uint32_t with_piece(std::uint32_t first, std::uint8_t piece) {
  return first | std::uint32_t(piece) << 8;
}

Immediate unpack(std::uint32_t bits) {
  return {std::uint16_t(bits >> 16), std::uint8_t(bits >> 8), std::uint16_t((bits & 0xff) + 1)};
}

}  // namespace weft::transfer
