#include "net_plugin/transfer/piece_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "net_plugin/transfer/wire.h"

namespace weft::transfer {
namespace {

// Whatever the message and the limits: the pieces cover it exactly, none is empty but the only one of an empty message,
// there are no more than allowed, and all but the last are aligned.
TEST(PiecePlan, CoversEveryMessageWithinEveryLimit) {
  std::mt19937_64 random(3);
  for (int run = 0; run < 100'000; run++) {
    const std::size_t message = random() % 2 ? random() % (1 << 20) : random() % (kMaxMessage + 1);
    const PieceLimits limits{random() % 2 ? 0 : 128 * (random() % 100'000), 1 + int(random() % 128),
                             int(random() % 800'000)};
    const auto allowed = std::uint16_t(1 + random() % kMaxPieces);
    const PiecePlan plan = plan_pieces(message, limits, allowed);
    ASSERT_GE(plan.pieces, 1);
    ASSERT_LE(plan.pieces, allowed);
    ASSERT_EQ(plan.bytes % kPieceAlignment, 0u);
    ASSERT_GE(plan.bytes * plan.pieces, message);
    if (message > 0) {
      ASSERT_LT(plan.bytes * (plan.pieces - 1u), message);
    }
  }
}

TEST(PiecePlan, SmallMessagesGoWhole) {
  EXPECT_EQ(plan_pieces(8192, {0, 24, 100'000}, 256).pieces, 1);
  EXPECT_EQ(plan_pieces(0, {0, 24, 100'000}, 256).pieces, 1);
}

TEST(PiecePlan, FastLinksGetLargerPieces) {
  const auto bytes = [](int mbps) { return plan_pieces(512 << 10, {0, 24, mbps}, 256).bytes; };
  EXPECT_EQ(bytes(100'000), 8192u);
  EXPECT_GE(bytes(400'000), 25'000u);
  EXPECT_LE(bytes(800'000), 65'536u);
}

// Whatever was asked for before, and however the number of paths has changed.
TEST(PiecePlan, RememberedPlansAreThePlans) {
  PieceLimits limits{0, 2, 100'000};
  PlanMemory memory(limits);
  std::mt19937 random(4);
  for (int i = 0; i < 2000; i++) {
    if (random() % 50 == 0) {
      limits.paths = 1 + int(random() % 48);
      memory.set_paths(limits.paths);
    }
    const std::size_t message = random() % 3 == 0 ? 0 : (random() % 4) * 300'000;
    const auto allowed = std::uint16_t(1 + random() % 3 * 100);
    const PiecePlan expected = plan_pieces(message, limits, allowed);
    EXPECT_EQ(memory.plan(message, allowed).bytes, expected.bytes);
    EXPECT_EQ(memory.plan(message, allowed).pieces, expected.pieces);
  }
}

}  // namespace
}  // namespace weft::transfer
