#include "tests/rig/soft_rnic/protocol/held_packets.h"

namespace weft::soft_rnic {

bool HeldPackets::keep(Psn psn, Psn expected, std::span<const std::uint8_t> udp_payload) {
  if (psn - expected >= slots_.size()) return false;
  Slot& place = slots_[psn % slots_.size()];
  if (!place.used) ++held_;
  place.used = true;
  place.psn = psn;
  place.bytes.assign(udp_payload.begin(), udp_payload.end());
  return true;
}

std::span<const std::uint8_t> HeldPackets::find(Psn psn) const {
  const Slot& place = slot(psn);
  if (!place.used || place.psn != psn) return {};
  return place.bytes;
}

void HeldPackets::drop(Psn psn) {
  Slot& place = slots_[psn % slots_.size()];
  if (!place.used || place.psn != psn) return;
  place.used = false;
  --held_;
}

void HeldPackets::clear() {
  for (Slot& place : slots_)
    place.used = false;
  held_ = 0;
}

}  // namespace weft::soft_rnic
