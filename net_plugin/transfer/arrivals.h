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
  bool is_open(std::uint32_t number) const { return slot(number).message != kNone; }

  Verdict arrived(const Immediate& immediate, std::size_t bytes);

  // Of an open message.
  bool complete(std::uint32_t number) const { return slot(number).seen == slot(number).pieces; }
  std::size_t bytes(std::uint32_t number) const { return slot(number).size - slot(number).room; }
  std::uint16_t pieces(std::uint32_t number) const { return slot(number).pieces; }

 private:
  struct alignas(64) Slot {
    std::uint32_t message = kNone;  // low 16 bits of the number of the message that is open
    std::uint16_t pieces = kUnknown;
    std::uint16_t seen = 0;
    std::size_t size = 0;
    std::size_t room = 0;  // bytes that may still come
    std::bitset<kMaxPieces> which;
  };
  // No number's low 16 bits, and more pieces than there can be: until the first is here nobody knows how many come.
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint16_t kUnknown = 0xffff;
  Slot& slot(std::uint32_t number) { return (*slots_)[number % kSlots]; }
  const Slot& slot(std::uint32_t number) const { return (*slots_)[number % kSlots]; }

  std::unique_ptr<std::array<Slot, kSlots>> slots_ = std::make_unique<std::array<Slot, kSlots>>();
};

}  // namespace weft::transfer
