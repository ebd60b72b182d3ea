// What travels on the data path besides the user's bytes: the immediate value of a piece and the clear-to-send record.
// docs/protocol.md describes both; a change here is a new wire version (setup/messages.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::transfer {

// Messages of a connection are numbered from 0 in the order in which they are received. A message's slot is its number
// modulo kSlots, its generation the eight bits above: together the low 16 bits of the number.
inline constexpr std::uint32_t kSlots = 256;
inline constexpr std::uint32_t kMaxPieces = 256;
inline constexpr std::size_t kPieceAlignment = 128;
// NCCL keeps a message at 1 GiB or below (docs/nccl-interfaces.md §3).
inline constexpr std::size_t kMaxMessage = std::size_t(1) << 30;
inline constexpr int kMaxGroup = 8;    // receives posted together
inline constexpr int kMaxDevices = 8;  // devices of one connection on one side, v12's limit

// The 32 immediate bits of a piece, most significant first: generation 8, slot 8, piece 8, pieces - 1 8.
struct Immediate {
  std::uint16_t message = 0;  // low 16 bits of the message's number: generation and slot
  std::uint8_t piece = 0;
  std::uint16_t pieces = 1;  // 1 … kMaxPieces
};

std::uint32_t pack(const Immediate& immediate);  // in host order; the caller converts to network order
// `first` is that of the same message's first piece.
std::uint32_t with_piece(std::uint32_t first, std::uint8_t piece);
Immediate unpack(std::uint32_t bits);

// One receive buffer, offered by the receiver: written by RDMA into the sender's ring at index number % kSlots. It
// fills one cache line, so that a reader that sees `number` sees the rest (the same property of PCIe writes that NCCL's
// own transport relies on).
struct alignas(64) ClearToSend {
  std::uint64_t address;
  std::uint32_t keys[kMaxDevices];  // remote key of the buffer on each of the receiver's devices
  std::uint32_t size;               // bytes that fit
  std::int32_t tag;
  std::uint16_t pieces;  // the sender may use up to so many pieces: the receiver has queued receives for them
  std::uint8_t group;    // number of receives posted together
  std::uint8_t index;    // place in the group
  std::uint32_t reserved[2];
  std::uint32_t number;  // message number + 1, so that zeroed memory is no record; last in the line
};

static_assert(sizeof(ClearToSend) == 64);
static_assert(offsetof(ClearToSend, number) == 60);
static_assert(kSlots == 1u << 8 && kMaxPieces == 1u << 8, "the immediate has eight bits for each");

}  // namespace weft::transfer
