// Packets that overtook others, kept for a short while so that reordering on the way is not taken for loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/rig/soft_rnic/protocol/psn.h"

namespace weft::soft_rnic {

class HeldPackets {
 public:
  // At most `capacity` packets, none `capacity` or more ahead of the expected one.
  explicit HeldPackets(std::size_t capacity) : slots_(capacity) {}

  bool empty() const { return held_ == 0; }
  // Copies the packet; false where it is too far ahead.
  bool keep(Psn psn, Psn expected, std::span<const std::uint8_t> udp_payload);
  // The bytes of packet `psn` if held; they stay valid until the next keep().
  std::span<const std::uint8_t> find(Psn psn) const;
  void drop(Psn psn);
  void clear();

 private:
  struct Slot {
    bool used = false;
    Psn psn = 0;
    std::vector<std::uint8_t> bytes;
  };
  const Slot& slot(Psn psn) const { return slots_[psn % slots_.size()]; }

  std::vector<Slot> slots_;
  std::size_t held_ = 0;
};

}  // namespace weft::soft_rnic
