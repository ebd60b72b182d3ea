#include "tests/rig/soft_rnic/wire/headers.h"

#include <cstring>

#include "tests/rig/soft_rnic/wire/byte_order.h"

namespace weft::soft_rnic {
namespace {

constexpr std::uint8_t kSolicitedBit = 0x80;
constexpr std::uint8_t kMigratedBit =
    0x40;  // MigReq: 1 is "migrated", the state of a queue pair without path migration
constexpr std::uint8_t kAcknowledgeRequestBit = 0x80;
constexpr std::uint16_t kDefaultPartition = 0xffff;

}  // namespace

std::optional<OpcodeLayout> layout_of(Opcode opcode) {
  using enum Opcode;
  switch (opcode) {
    case send_first:
      return OpcodeLayout{Operation::send, true, false, false, false, false};
    case send_middle:
      return OpcodeLayout{Operation::send, false, false, false, false, false};
    case send_last:
      return OpcodeLayout{Operation::send, false, true, false, false, false};
    case send_last_immediate:
      return OpcodeLayout{Operation::send, false, true, true, false, false};
    case send_only:
      return OpcodeLayout{Operation::send, true, true, false, false, false};
    case send_only_immediate:
      return OpcodeLayout{Operation::send, true, true, true, false, false};
    case write_first:
      return OpcodeLayout{Operation::write, true, false, false, true, false};
    case write_middle:
      return OpcodeLayout{Operation::write, false, false, false, false, false};
    case write_last:
      return OpcodeLayout{Operation::write, false, true, false, false, false};
    case write_last_immediate:
      return OpcodeLayout{Operation::write, false, true, true, false, false};
    case write_only:
      return OpcodeLayout{Operation::write, true, true, false, true, false};
    case write_only_immediate:
      return OpcodeLayout{Operation::write, true, true, true, true, false};
    case read_request:
      return OpcodeLayout{Operation::read_request, true, true, false, true, false};
    case read_response_first:
      return OpcodeLayout{Operation::read_response, true, false, false, false, true};
    case read_response_middle:
      return OpcodeLayout{Operation::read_response, false, false, false, false, false};
    case read_response_last:
      return OpcodeLayout{Operation::read_response, false, true, false, false, true};
    case read_response_only:
      return OpcodeLayout{Operation::read_response, true, true, false, false, true};
    case acknowledge:
      return OpcodeLayout{Operation::acknowledge, true, true, false, false, true};
    case atomic_acknowledge:
      return OpcodeLayout{Operation::atomic_response, true, true, false, false, true};
    case compare_swap:
    case fetch_add:
      return OpcodeLayout{Operation::atomic, true, true, false, false, false};
  }
  return std::nullopt;
}

Opcode message_opcode(Operation operation, bool first, bool last, bool immediate) {
  const auto base = static_cast<std::uint8_t>(operation == Operation::write ? Opcode::write_first : Opcode::send_first);
  std::uint8_t step = 1;  // middle
  if (first && last) {
    step = immediate ? 5 : 4;
  } else if (first) {
    step = 0;
  } else if (last) {
    step = immediate ? 3 : 2;
  }
  return static_cast<Opcode>(base + step);
}

Opcode read_response_opcode(bool first, bool last) {
  if (first && last) return Opcode::read_response_only;
  if (first) return Opcode::read_response_first;
  return last ? Opcode::read_response_last : Opcode::read_response_middle;
}

std::uint8_t* HeaderWriter::take(std::size_t bytes) {
  std::uint8_t* place = place_.data() + size_;
  size_ += bytes;
  return place;
}

HeaderWriter& HeaderWriter::base(const BaseHeader& header) {
  std::uint8_t* place = take(kBaseHeaderSize);
  place[0] = static_cast<std::uint8_t>(header.opcode);
  place[1] = static_cast<std::uint8_t>((header.solicited ? kSolicitedBit : 0) | kMigratedBit | header.pad << 4);
  store_big16(place + 2, kDefaultPartition);
  place[4] = 0;
  store_big24(place + 5, header.destination_queue_pair);
  place[8] = header.acknowledge_request ? kAcknowledgeRequestBit : 0;
  store_big24(place + 9, header.psn);
  return *this;
}

HeaderWriter& HeaderWriter::rdma(const RdmaHeader& header) {
  std::uint8_t* place = take(kRdmaHeaderSize);
  store_big64(place, header.address);
  store_big32(place + 8, header.key);
  store_big32(place + 12, header.length);
  return *this;
}

HeaderWriter& HeaderWriter::atomic(const AtomicHeader& header) {
  std::uint8_t* place = take(kAtomicHeaderSize);
  store_big64(place, header.address);
  store_big32(place + 8, header.key);
  store_big64(place + 12, header.swap_or_add);
  store_big64(place + 20, header.compare);
  return *this;
}

HeaderWriter& HeaderWriter::acknowledge(const AcknowledgeHeader& header) {
  std::uint8_t* place = take(kAcknowledgeHeaderSize);
  place[0] = header.syndrome;
  store_big24(place + 1, header.message_sequence_number);
  return *this;
}

HeaderWriter& HeaderWriter::atomic_result(std::uint64_t original) {
  store_big64(take(kAtomicResultSize), original);
  return *this;
}

HeaderWriter& HeaderWriter::immediate(std::uint32_t as_stored) {
  std::memcpy(take(kImmediateSize), &as_stored, kImmediateSize);
  return *this;
}

std::optional<std::uint32_t> destination_queue_pair_of(std::span<const std::uint8_t> udp_payload) {
  if (udp_payload.size() < kBaseHeaderSize + kIcrcSize) return std::nullopt;
  return load_big24(udp_payload.data() + 5);
}

std::optional<Packet> parse_packet(std::span<const std::uint8_t> udp_payload) {
  if (udp_payload.size() < kBaseHeaderSize + kIcrcSize) return std::nullopt;
  const std::uint8_t* place = udp_payload.data();
  const auto layout = layout_of(static_cast<Opcode>(place[0]));
  if (!layout || (place[1] & 0x0f) != 0) return std::nullopt;

  Packet packet;
  packet.layout = *layout;
  packet.base.opcode = static_cast<Opcode>(place[0]);
  packet.base.solicited = (place[1] & kSolicitedBit) != 0;
  packet.base.pad = place[1] >> 4 & 3;
  packet.base.destination_queue_pair = load_big24(place + 5);
  packet.base.acknowledge_request = (place[8] & kAcknowledgeRequestBit) != 0;
  packet.base.psn = load_big24(place + 9);

  std::size_t headers = kBaseHeaderSize;
  if (layout->rdma) headers += kRdmaHeaderSize;
  if (layout->operation == Operation::atomic) headers += kAtomicHeaderSize;
  if (layout->aeth) headers += kAcknowledgeHeaderSize;
  if (layout->operation == Operation::atomic_response) headers += kAtomicResultSize;
  if (layout->immediate) headers += kImmediateSize;
  if (udp_payload.size() < headers + packet.base.pad + kIcrcSize) return std::nullopt;

  const std::uint8_t* next = place + kBaseHeaderSize;
  if (layout->rdma) {
    packet.rdma = {load_big64(next), load_big32(next + 8), load_big32(next + 12)};
    next += kRdmaHeaderSize;
  }
  if (layout->operation == Operation::atomic) {
    packet.atomic = {load_big64(next), load_big32(next + 8), load_big64(next + 12), load_big64(next + 20)};
    next += kAtomicHeaderSize;
  }
  if (layout->aeth) {
    packet.acknowledge = {next[0], load_big24(next + 1)};
    next += kAcknowledgeHeaderSize;
  }
  if (layout->operation == Operation::atomic_response) {
    packet.atomic_result = load_big64(next);
    next += kAtomicResultSize;
  }
  if (layout->immediate) {
    std::memcpy(&packet.immediate, next, kImmediateSize);
    next += kImmediateSize;
  }
  packet.payload = {next, udp_payload.size() - headers - packet.base.pad - kIcrcSize};
  return packet;
}

}  // namespace weft::soft_rnic
