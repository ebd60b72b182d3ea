#include "tests/rig/rank/collective.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace weft::rank {
namespace {

constexpr int kRanks = 4;

struct Buffers {
  std::vector<std::byte> send, receive;
};

std::vector<Buffers> filled(const Operation& operation) {
  std::vector<Buffers> all(kRanks);
  for (int rank = 0; rank < kRanks; rank++) {
    const Layout now = layout(operation, rank, kRanks, 9);
    all[std::size_t(rank)].send.resize(now.send_bytes);
    all[std::size_t(rank)].receive.resize(now.receive_bytes, std::byte{0xa5});
    for (const Block& block : now.send) {
      fill(block.pattern, operation.element, block.first, block.count,
           all[std::size_t(rank)].send.data() + block.offset);
    }
  }
  return all;
}

std::size_t wrong(const Operation& operation, const std::vector<Buffers>& all) {
  std::size_t sum = 0;
  for (int rank = 0; rank < kRanks; rank++) {
    for (const Block& block : layout(operation, rank, kRanks, 9).receive) {
      sum += check(block.pattern, operation.element, block.first, block.count,
                   all[std::size_t(rank)].receive.data() + block.offset)
                 .wrong;
    }
  }
  return sum;
}

// What each collective means, done by memcpy and addition: the layouts of all ranks must agree with it.
void carry_out(const Operation& operation, std::vector<Buffers>& all) {
  const std::size_t block = operation.bytes / kRanks;
  for (std::size_t rank = 0; rank < kRanks; rank++) {
    std::byte* out = all[rank].receive.data();
    switch (operation.kind) {
      case Kind::all_gather:
        for (std::size_t from = 0; from < kRanks; from++)
          std::memcpy(out + block * from, all[from].send.data(), block);
        break;
      case Kind::broadcast:
        std::memcpy(out, all[std::size_t(operation.root)].send.data(), operation.bytes);
        break;
      case Kind::send_recv_ring:
        std::memcpy(out, all[(rank + kRanks - 1) % kRanks].send.data(), operation.bytes);
        break;
      case Kind::all_to_all:
        for (std::size_t from = 0; from < kRanks; from++) {
          std::memcpy(out + block * from, all[from].send.data() + block * rank, block);
        }
        break;
      default: {
        const std::size_t offset = operation.kind == Kind::reduce_scatter ? block * rank : 0;
        auto* sums = reinterpret_cast<std::int32_t*>(out);
        for (std::size_t i = 0; i < all[rank].receive.size() / 4; i++) {
          sums[i] = 0;
          for (const Buffers& from : all) {
            std::int32_t value = 0;
            std::memcpy(&value, from.send.data() + offset + 4 * i, 4);
            sums[i] += value;
          }
        }
      }
    }
  }
}

class EveryKind : public testing::TestWithParam<Kind> {
 protected:
  EveryKind() {
    operation_.kind = GetParam();
    operation_.bytes = 4096;
    operation_.element = Element::i32;
    operation_.root = 2;
  }
  Operation operation_;
};

TEST_P(EveryKind, TheRightResultPasses) {
  auto all = filled(operation_);
  carry_out(operation_, all);
  EXPECT_EQ(wrong(operation_, all), 0u);
}

TEST_P(EveryKind, NothingReceivedIsAllWrong) {
  const auto all = filled(operation_);
  EXPECT_GE(wrong(operation_, all), operation_.bytes / 4);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKind,
                         testing::Values(Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::broadcast,
                                         Kind::reduce, Kind::send_recv_ring, Kind::all_to_all),
                         [](const auto& kind) { return kind_name(kind.param); });

}  // namespace
}  // namespace weft::rank
