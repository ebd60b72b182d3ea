#include "net_plugin/transfer/piece_plan.h"

#include <algorithm>

#include "net_plugin/transfer/wire.h"

namespace weft::transfer {
namespace {

// Small pieces keep the queues short: every path holds one, and those that share a spine wait for each other. A thread
// of NCCL must keep up with a whole NIC, though: at 0.3 to 0.5 us a piece (bench/micro/net_benchmark.cc) two million a
// second are within its means, and they need larger pieces from 140 Gbit/s on.
constexpr std::size_t kSmallestPiece = 8 * 1024;
constexpr std::size_t kLargestPiece = 64 * 1024;
constexpr std::size_t kPiecesPerSecond = 2'000'000;
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
  const std::size_t affordable = std::size_t(std::max(0, limits.link_mbps)) * (1'000'000 / 8) / kPiecesPerSecond;
  const std::size_t smallest = std::clamp(affordable, kSmallestPiece, kLargestPiece);
  const std::size_t automatic =
      std::clamp(message / (std::size_t(std::max(1, limits.paths)) * kPiecesPerPath), smallest, kLargestPiece);
  const std::size_t wanted = limits.piece_bytes != 0 ? limits.piece_bytes : automatic;
  const std::size_t most = std::clamp<std::size_t>(allowed, 1, kMaxPieces);
  const std::size_t bytes = round_up(std::max({wanted, ceil_divide(message, most), std::size_t(1)}));
  return {bytes, std::uint16_t(std::max<std::size_t>(1, ceil_divide(message, bytes)))};
}

void PlanMemory::set_paths(int paths) {
  limits_.paths = paths;
  allowed_ = 0;
}

void PlanMemory::remember(std::size_t message, std::uint16_t allowed) {
  message_ = message;
  allowed_ = allowed;
  plan_ = plan_pieces(message, limits_, allowed);
}

}  // namespace weft::transfer
