#include "net_plugin/transfer/piece_plan.h"

#include <algorithm>

#include "net_plugin/transfer/wire.h"

namespace weft::transfer {
namespace {

// Below the smaller size a NIC is limited by messages per second, above the larger one a piece waits too long behind
// another on a shared link (docs/net-plugin.md, "Pieces").
constexpr std::size_t kSmallestPiece = 16 * 1024;
constexpr std::size_t kLargestPiece = 64 * 1024;
// Pieces per path and message: enough for a fast path to take more than a slow one.
constexpr std::size_t kPiecesPerPath = 4;

std::size_t ceil_divide(std::size_t value, std::size_t by) {
  return (value + by - 1) / by;
}
std::size_t round_up(std::size_t value) {
  return ceil_divide(value, kPieceAlignment) * kPieceAlignment;
}

}  // namespace

PiecePlan plan_pieces(std::size_t message, const PieceLimits& limits, std::uint16_t allowed) {
  const std::size_t automatic =
      std::clamp(message / (std::size_t(std::max(1, limits.paths)) * kPiecesPerPath), kSmallestPiece, kLargestPiece);
  const std::size_t wanted = limits.piece_bytes != 0 ? limits.piece_bytes : automatic;
  const std::size_t most = std::clamp<std::size_t>(allowed, 1, kMaxPieces);
  const std::size_t bytes = round_up(std::max({wanted, ceil_divide(message, most), std::size_t(1)}));
  return {bytes, std::uint16_t(std::max<std::size_t>(1, ceil_divide(message, bytes)))};
}

}  // namespace weft::transfer
