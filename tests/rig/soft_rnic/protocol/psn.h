// Packet sequence numbers: 24 bits on the wire, counted without wrapping inside.
#pragma once

#include <cstdint>

namespace weft::soft_rnic {

using Psn = std::uint64_t;

// Internal numbers start here (plus the 24 bits given by modify_qp), so that going back never goes below zero.
inline constexpr Psn kPsnOrigin = Psn{1} << 32;

inline std::uint32_t wire_psn(Psn psn) {
  return static_cast<std::uint32_t>(psn & 0xffffff);
}

inline Psn initial_psn(std::uint32_t wire) {
  return kPsnOrigin + (wire & 0xffffff);
}

// The number with these 24 bits that is nearest to `near`.
inline Psn nearest_psn(Psn near, std::uint32_t wire) {
  const auto ahead = static_cast<std::int32_t>((wire - wire_psn(near)) << 8) >> 8;
  return near + static_cast<Psn>(static_cast<std::int64_t>(ahead));
}

// Packets that a message of `length` bytes takes: at least one.
inline std::uint64_t packets_of(std::uint64_t length, std::uint32_t mtu) {
  return length == 0 ? 1 : (length + mtu - 1) / mtu;
}

}  // namespace weft::soft_rnic
