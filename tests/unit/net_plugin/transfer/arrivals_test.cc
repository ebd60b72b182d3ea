#include "net_plugin/transfer/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "net_plugin/transfer/piece_plan.h"

namespace weft::transfer {
namespace {

using Verdict = Arrivals::Verdict;

TEST(Immediate, EveryFieldSurvivesPacking) {
  for (const std::uint32_t message : {0u, 1u, 255u, 256u, 0xfffeu, 0xffffu}) {
    for (int piece = 0; piece < 256; piece++) {
      for (const std::uint32_t pieces : {1u, 2u, 128u, 255u, 256u}) {
        const Immediate back = unpack(pack({std::uint16_t(message), std::uint8_t(piece), std::uint16_t(pieces)}));
        ASSERT_EQ(back.message, message);
        ASSERT_EQ(back.piece, piece);
        ASSERT_EQ(back.pieces, pieces);
      }
    }
  }
}

// Whatever the order, with repeats and strays of earlier messages: complete exactly when all pieces are there, size
// right.
TEST(Arrivals, CompleteInAnyOrder) {
  std::mt19937 random(2);
  Arrivals arrivals;
  for (std::uint32_t number = 0; number < 3000; number++) {
    const auto pieces = std::uint16_t(1 + random() % 256);
    std::vector<std::uint16_t> order(pieces);
    for (std::uint16_t i = 0; i < pieces; i++)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    arrivals.open(number, std::size_t(pieces) * 128);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < order.size(); i++) {
      const std::size_t size = random() % 129;
      bytes += size;
      const Immediate immediate{std::uint16_t(number), std::uint8_t(order[i]), pieces};
      ASSERT_EQ(arrivals.arrived(immediate, size), i + 1 == order.size() ? Verdict::completed : Verdict::accepted);
      if (random() % 4 == 0) {
        ASSERT_EQ(arrivals.arrived(immediate, size), Verdict::duplicate);
      }
      if (number >= 256 && random() % 8 == 0) {
        ASSERT_EQ(arrivals.arrived({std::uint16_t(number - 256), 0, pieces}, 1), Verdict::stale)
            << "the generation before in this slot";
      }
    }
    ASSERT_EQ(arrivals.bytes(number), bytes);
    arrivals.close(number);
    ASSERT_EQ(arrivals.arrived({std::uint16_t(number), 0, pieces}, 1), Verdict::stale);
  }
}

TEST(Arrivals, RefusesWhatCannotBe) {
  Arrivals arrivals;
  arrivals.open(5, 100);
  EXPECT_EQ(arrivals.arrived({5, 3, 3}, 1), Verdict::invalid) << "piece 3 of 3";
  EXPECT_EQ(arrivals.arrived({5, 0, 2}, 101), Verdict::invalid) << "more than fits";
  EXPECT_EQ(arrivals.arrived({5, 0, 2}, 50), Verdict::accepted);
  EXPECT_EQ(arrivals.arrived({5, 1, 3}, 50), Verdict::invalid) << "another number of pieces";
}

TEST(PiecePlan, CoversTheMessageWithinItsLimits) {
  std::mt19937_64 random(4);
  for (int run = 0; run < 20000; run++) {
    const std::size_t message = random() % 4 == 0 ? random() % (kMaxMessage + 1) : random() % 3'000'000;
    const auto allowed = std::uint16_t(1 + random() % 256);
    const PieceLimits limits{random() % 2 ? 0 : 128 * (1 + random() % 1024), 1 + int(random() % 128),
                             int(random() % 800'000)};
    const PiecePlan plan = plan_pieces(message, limits, allowed);
    ASSERT_GE(plan.pieces, 1);
    ASSERT_LE(plan.pieces, allowed);
    ASSERT_EQ(plan.bytes % kPieceAlignment, 0u);
    ASSERT_GE(plan.bytes * plan.pieces, message);
    ASSERT_LT(plan.bytes * (plan.pieces - 1u), std::max<std::size_t>(message, 1)) << "no empty piece at the end";
  }
}

}  // namespace
}  // namespace weft::transfer
