// The receiver's bookkeeping: which pieces of which message have arrived. Pure. Pieces come in any order and over any
// path; a piece that comes twice, or one of a message that has gone, counts for nothing.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net_plugin/transfer/wire.h"

namespace weft::transfer {

class Arrivals {
 public:
  enum class Verdict {
    accepted,
    completed,  // accepted, and it was the last one missing
    duplicate,
    stale,    // the message is not open: completed earlier, or never offered
    invalid,  // the immediate contradicts an earlier one of the same message
  };

  // Opens message `number` with room for `size` bytes; its slot must be free.
  void open(std::uint32_t number, std::size_t size);
  void close(std::uint32_t number);
  bool is_open(std::uint32_t number) const { return slot(number).open; }

  Verdict arrived(const Immediate& immediate, std::size_t bytes);

  // Of an open message.
  bool complete(std::uint32_t number) const { return slot(number).seen == slot(number).pieces; }
  std::size_t bytes(std::uint32_t number) const { return slot(number).bytes; }
  std::uint16_t pieces(std::uint32_t number) const { return slot(number).pieces; }

 private:
  struct Slot {
    bool open = false;
    std::uint16_t message = 0;      // low 16 bits of its number
    std::uint16_t pieces = 0xffff;  // unknown until the first piece is here: more than there can be
    std::uint16_t seen = 0;
    std::size_t bytes = 0;
    std::size_t size = 0;
    std::bitset<kMaxPieces> which;
  };
  static constexpr std::uint16_t kUnknown = 0xffff;
  Slot& slot(std::uint32_t number) { return (*slots_)[number % kSlots]; }
  const Slot& slot(std::uint32_t number) const { return (*slots_)[number % kSlots]; }

  std::unique_ptr<std::array<Slot, kSlots>> slots_ = std::make_unique<std::array<Slot, kSlots>>();
};

}  // namespace weft::transfer
