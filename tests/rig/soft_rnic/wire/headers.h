// The RoCEv2 transport headers as they lie in the payload of a UDP packet to port 4791: InfiniBand Architecture
// Specification, volume 1, chapter 9 (BTH, RETH, AETH, AtomicETH, AtomicAckETH, ImmDt), reliable connection only.
// Everything on the wire is big endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft::soft_rnic {

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::size_t kBaseHeaderSize = 12;
inline constexpr std::size_t kRdmaHeaderSize = 16;
inline constexpr std::size_t kAtomicHeaderSize = 28;
inline constexpr std::size_t kAcknowledgeHeaderSize = 4;
inline constexpr std::size_t kAtomicResultSize = 8;
inline constexpr std::size_t kImmediateSize = 4;
inline constexpr std::size_t kIcrcSize = 4;
// The longest run of headers: BTH and AtomicETH.
inline constexpr std::size_t kMaxHeaderSize = kBaseHeaderSize + kAtomicHeaderSize;

enum class Opcode : std::uint8_t {
  send_first = 0,
  send_middle = 1,
  send_last = 2,
  send_last_immediate = 3,
  send_only = 4,
  send_only_immediate = 5,
  write_first = 6,
  write_middle = 7,
  write_last = 8,
  write_last_immediate = 9,
  write_only = 10,
  write_only_immediate = 11,
  read_request = 12,
  read_response_first = 13,
  read_response_middle = 14,
  read_response_last = 15,
  read_response_only = 16,
  acknowledge = 17,
  atomic_acknowledge = 18,
  compare_swap = 19,
  fetch_add = 20,
};

enum class Operation : std::uint8_t { send, write, read_request, read_response, acknowledge, atomic_response, atomic };

// What an opcode says about its packet.
struct OpcodeLayout {
  Operation operation;
  bool first;      // begins a message
  bool last;       // ends a message
  bool immediate;  // carries ImmDt
  bool rdma;       // carries RETH
  bool aeth;       // carries AETH

  bool request() const {
    return operation == Operation::send || operation == Operation::write || operation == Operation::read_request ||
           operation == Operation::atomic;
  }
};

// Nothing for an opcode that a reliable connection does not have.
std::optional<OpcodeLayout> layout_of(Opcode opcode);

// The opcode of one packet of a SEND or WRITE message.
Opcode message_opcode(Operation operation, bool first, bool last, bool immediate);

// The opcode of one packet of a READ response.
Opcode read_response_opcode(bool first, bool last);

struct BaseHeader {  // BTH
  Opcode opcode = Opcode::acknowledge;
  bool solicited = false;
  std::uint8_t pad = 0;  // bytes of padding after the payload, 0 to 3
  std::uint32_t destination_queue_pair = 0;
  bool acknowledge_request = false;
  std::uint32_t psn = 0;  // 24 bits
};

struct RdmaHeader {  // RETH
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t length = 0;
};

struct AtomicHeader {  // AtomicETH
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;
};

struct AcknowledgeHeader {  // AETH
  std::uint8_t syndrome = 0;
  std::uint32_t message_sequence_number = 0;  // 24 bits
};

// AETH syndromes (table 45 of the specification): the top three bits are the kind.
enum class AcknowledgeKind : std::uint8_t { acknowledge = 0, receiver_not_ready = 1, negative = 3 };
inline constexpr std::uint8_t kSyndromeAcknowledge = 0x1f;  // "credit count invalid": no end-to-end flow control
inline constexpr std::uint8_t kSyndromeReceiverNotReady = 0x20;
inline constexpr std::uint8_t kSyndromePsnError = 0x60;
inline constexpr std::uint8_t kSyndromeInvalidRequest = 0x61;
inline constexpr std::uint8_t kSyndromeRemoteAccess = 0x62;
inline constexpr std::uint8_t kSyndromeRemoteOperation = 0x63;

// Bytes of padding that bring a payload to a multiple of four.
constexpr std::uint8_t padding_of(std::size_t payload_size) {
  return static_cast<std::uint8_t>((4 - (payload_size & 3)) & 3);
}

// Writes headers one after the other into a fixed place.
class HeaderWriter {
 public:
  explicit HeaderWriter(std::span<std::uint8_t, kMaxHeaderSize> place) : place_(place) {}

  HeaderWriter& base(const BaseHeader& header);
  HeaderWriter& rdma(const RdmaHeader& header);
  HeaderWriter& atomic(const AtomicHeader& header);
  HeaderWriter& acknowledge(const AcknowledgeHeader& header);
  HeaderWriter& atomic_result(std::uint64_t original);
  // The four bytes exactly as the application left them in imm_data.
  HeaderWriter& immediate(std::uint32_t as_stored);
  std::size_t size() const { return size_; }

 private:
  std::uint8_t* take(std::size_t bytes);

  std::span<std::uint8_t, kMaxHeaderSize> place_;
  std::size_t size_ = 0;
};

// A received packet taken apart. Only the headers that its opcode has are filled; `payload` lies inside the bytes
// parsed, without padding and ICRC.
struct Packet {
  BaseHeader base;
  OpcodeLayout layout{};
  RdmaHeader rdma;
  AtomicHeader atomic;
  AcknowledgeHeader acknowledge;
  std::uint64_t atomic_result = 0;
  std::uint32_t immediate = 0;  // as stored: the wire's four bytes
  std::span<const std::uint8_t> payload;
};

// The destination queue pair of any RoCEv2 packet, for dispatch before the rest is looked at; nothing if too short.
std::optional<std::uint32_t> destination_queue_pair_of(std::span<const std::uint8_t> udp_payload);

// `udp_payload` runs from the BTH to the ICRC, both included. Nothing for a packet that is too short for its opcode,
// has an unknown opcode or another transport version than 0.
std::optional<Packet> parse_packet(std::span<const std::uint8_t> udp_payload);

}  // namespace weft::soft_rnic
