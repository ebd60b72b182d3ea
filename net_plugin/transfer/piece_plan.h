// Into how many pieces a message is cut.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::transfer {

struct PieceLimits {
  std::size_t piece_bytes = 0;  // wanted size; 0: from the message and the number of paths
  int paths = 1;
  int link_mbps = 0;  // of the NIC, for the smallest piece; 0: not known
};

// All pieces but the last have `bytes`, a multiple of kPieceAlignment.
struct PiecePlan {
  std::size_t bytes = 0;
  std::uint16_t pieces = 1;  // 1 … kMaxPieces
};

// `allowed`: the receiver's limit, 1 … kMaxPieces. A message of 0 bytes is one empty piece.
PiecePlan plan_pieces(std::size_t message, const PieceLimits& limits, std::uint16_t allowed);

// The plan of the message before, for NCCL sends many of one size.
class PlanMemory {
 public:
  explicit PlanMemory(const PieceLimits& limits) : limits_(limits) {}
  void set_paths(int paths);
  const PiecePlan& plan(std::size_t message, std::uint16_t allowed) {
    if (message != message_ || allowed != allowed_) remember(message, allowed);
    return plan_;
  }

 private:
  void remember(std::size_t message, std::uint16_t allowed);

  PieceLimits limits_;
  std::size_t message_ = 0;
  std::uint16_t allowed_ = 0;  // never asked for: nothing is remembered
  PiecePlan plan_;
};

}  // namespace weft::transfer
