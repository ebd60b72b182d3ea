// Work requests as the protocol keeps them: scatter/gather elements already checked and turned into addresses.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/rig/soft_rnic/protocol/psn.h"

namespace weft::soft_rnic {

inline constexpr std::uint32_t kMaxPieces = 4;  // max_sge and max_sge_rd of every device

// Local memory of one scatter/gather element.
struct Piece {
  std::uint8_t* data = nullptr;
  std::uint32_t size = 0;
};

// Memory whose registration ends.
struct MemoryRange {
  const std::uint8_t* begin = nullptr;
  const std::uint8_t* end = nullptr;

  bool overlaps(const std::uint8_t* data, std::uint64_t size) const { return data < end && data + size > begin; }
};

struct PieceList {
  std::array<Piece, kMaxPieces> pieces{};
  std::uint32_t count = 0;

  std::uint64_t total() const;
  // The parts of these pieces that make up [offset, offset + size).
  PieceList part(std::uint64_t offset, std::uint32_t size) const;
  bool touches(const MemoryRange& range) const;
};

struct SendRequest {
  std::uint64_t id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  bool signaled = false;
  bool solicited = false;
  bool fenced = false;
  bool inlined = false;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t immediate = 0;  // the bytes of imm_data as the application stored them
  std::uint64_t compare = 0;
  std::uint64_t swap_or_add = 0;
  PieceList memory;                            // what is sent, or where a READ or atomic puts its result
  std::uint32_t length = 0;                    // bytes of `memory`
  std::vector<std::uint8_t> inline_data;       // `memory` points here for inline sends
  ibv_wc_status local_error = IBV_WC_SUCCESS;  // what post_send found wrong; reported when its turn comes
  Psn first = 0;                               // packets [first, end), set when the request is queued
  Psn end = 0;

  bool is_read() const { return opcode == IBV_WR_RDMA_READ; }
  bool is_atomic() const { return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP; }
  bool wants_response() const { return is_read() || is_atomic(); }
  bool is_write() const { return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }
  bool has_immediate() const { return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND_WITH_IMM; }
};

struct ReceiveRequest {
  std::uint64_t id = 0;
  PieceList memory;
};

// Where completions go; the completion queue in the NIC, a list in tests.
class CompletionSink {
 public:
  // `solicited`: the peer asked for an event even where only solicited completions raise one.
  virtual void add(const ibv_wc& completion, bool solicited) = 0;

 protected:
  ~CompletionSink() = default;
};

// The vendor's error code beside each status. The numbers are those that mlx5 devices are seen to report, since logs
// and tools know them; statuses for which none is known give the status itself.
std::uint32_t vendor_error_of(ibv_wc_status status);

}  // namespace weft::soft_rnic
