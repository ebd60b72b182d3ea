// From a kernel's arguments to its works, and from function ids to functions.
#include "tests/rig/emulated_cuda/kernels/works.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/unit/emulated_cuda/fake_ranks.h"

namespace weft::nccl_kernels {
namespace {

Batch batch(unsigned kind, unsigned function, std::uint32_t base, std::uint64_t set, unsigned jump = 0,
            bool extends = false) {
  return {jump | unsigned(extends) << 14 | kind << 15 | function << 17, base, set};
}

TEST(Batches, FieldsAreBitFields) {
  const Batch one = batch(kWorkCollective, 1234, 96, 5, 77, true);
  EXPECT_EQ(one.next_jump(), 77);
  EXPECT_TRUE(one.next_extends());
  EXPECT_EQ(one.work_kind(), kWorkCollective);
  EXPECT_EQ(one.function_id(), 1234);
}

TEST(Channels, TheBlocksTakeTheSetBitsInOrder) {
  EXPECT_EQ(channel_of_block(0b101100, 0), 2);
  EXPECT_EQ(channel_of_block(0b101100, 1), 3);
  EXPECT_EQ(channel_of_block(0b101100, 2), 5);
  EXPECT_DEATH(channel_of_block(0b101100, 3), "more blocks than channels");
}

std::size_t first_byte(const Works& works, int index) {
  return std::uint8_t(works.records[std::size_t(index) * kWorkBytes[works.kind]]);
}

TEST(Works, AreReadBehindTheArguments) {
  const std::size_t bytes = kWorkBytes[kWorkSendReceive];
  struct {
    KernelArguments arguments{};
    char rest[1024] = {};
  } launch;
  launch.arguments.work_storage = kInArguments;
  auto* whole = reinterpret_cast<char*>(&launch);
  for (std::size_t i = 0; i < 4; i++)
    whole[128 + i * bytes] = char(i + 1);
  Works works;
  append_works(launch.arguments, batch(kWorkSendReceive, 0, 128, 0b1011), works);
  ASSERT_EQ(works.count, 3);
  EXPECT_EQ(first_byte(works, 0), 1u);
  EXPECT_EQ(first_byte(works, 1), 2u);
  EXPECT_EQ(first_byte(works, 2), 4u);
}

TEST(Works, OfTheFifoWrapAroundItsEnd) {
  std::vector<char> fifo(256);
  for (std::size_t i = 0; i < fifo.size(); i++)
    fifo[i] = char(i);
  KernelArguments arguments{};
  arguments.work_storage = kInFifo;
  arguments.work_mask = 255;
  arguments.work_buffer = fifo.data();
  Works works;
  append_works(arguments, batch(kWorkSendReceive, 0, 256 * 7 + 240, 1), works);
  ASSERT_EQ(works.count, 1);
  EXPECT_EQ(std::uint8_t(works.records[15]), 255);
  EXPECT_EQ(std::uint8_t(works.records[16]), 0);
}

TEST(Works, OfAnExtendedBatchLieBehindTheOthers) {
  struct {
    KernelArguments arguments{};
    char rest[1024] = {};
  } launch;
  Works works;
  append_works(launch.arguments, batch(kWorkSendReceive, 0, 128, 0b11), works);
  append_works(launch.arguments, batch(kWorkSendReceive, 0, 512, 0b1), works);
  EXPECT_EQ(works.count, 3);
  EXPECT_EQ(works.records.size(), 3 * kWorkBytes[kWorkSendReceive]);
}

TEST(Works, AKindThatTheVersionDoesNotHaveIsRefused) {
  if constexpr (!kHasGatheredBroadcasts) {
    Works works;
    EXPECT_DEATH(append_works({}, batch(kWorkBroadcast, 0, 0, 1), works), "work kind 3");
  } else {
    EXPECT_EQ(kWorkBytes[kWorkBroadcast], 48u);
  }
}

TEST(Fifo, TheVersionThatNeedsItIsToldWhatWasRead) {
  testing::FakeRanks ranks(2);
  const Block block = ranks.block(0);
  KernelArguments arguments{};
  arguments.work_storage = kInFifo;
  if constexpr (kNcclVersion == 22203) {
    std::uint32_t consumed[kMaxChannels] = {};
    auto* words = reinterpret_cast<char*>(block.communicator) + 32;  // the place of the pointer in this version
    std::uint32_t* pointer = consumed;
    std::memcpy(words, &pointer, sizeof pointer);
    release_fifo(block, arguments, batch(kWorkCollective, 0, 1000, 0b1001));
    EXPECT_EQ(consumed[0], 1000 + 4 * 64u);
    release_fifo(block, arguments, batch(kWorkCollective, 0, 5000, 1, 1, true));
    EXPECT_EQ(consumed[0], 1000 + 4 * 64u) << "not before the whole work is read";
  } else {
    release_fifo(block, arguments, batch(kWorkCollective, 0, 1000, 0b1001));  // the host uses events
  }
}

TEST(Parts, EveryChannelTakesADifferentOne) {
  WorkSendReceive work{};
  work.channels = 8;
  work.channel_base = 3;
  std::set<int> parts;
  for (int channel = 3; channel < 11; channel++)
    parts.insert(send_receive_part(work, channel));
  EXPECT_EQ(parts.size(), 8u);
  EXPECT_EQ(*parts.begin(), 0);
  EXPECT_EQ(*parts.rbegin(), 7);
  EXPECT_EQ(send_receive_part(work, 3), 0);
  EXPECT_EQ(send_receive_part(work, 4), kNcclVersion == 22203 ? 4 : 1) << "2.22.3 reverses the bits";
}

// 1 send/receive; then, times three protocols: all-gather, broadcast, gathered broadcasts; 5 reductions of each type:
// all-reduce with 6 algorithms, reduce, reduce-scatter.
constexpr std::size_t kRows =
    kNcclVersion == 22907 ? 1 + 3 * (4 + 1 + 1 + 5 * 12 * (6 + 1 + 4)) : 1 + 3 * (3 + 1 + 5 * 10 * (6 + 1 + 3));

TEST(FunctionTable, HasTheRowsOfTheVersion) {
  EXPECT_EQ(function_rows().size(), kRows);
}

TEST(FunctionTable, InvertsIdsToRows) {
  // As in NCCL's archive: not every function is built, and ids have an order of their own.
  const std::vector<Function> rows = function_rows();
  std::vector<int> ids;
  for (std::size_t row = 0; row < rows.size(); row++)
    ids.push_back(row % 5 == 4 ? -1 : int(rows.size() - row));
  ids.push_back(-1);
  const std::vector<Function> functions = invert(ids.data());
  for (std::size_t row = 0; row < rows.size(); row++) {
    if (ids[row] >= 0) {
      EXPECT_EQ(functions[std::size_t(ids[row])], rows[row]) << row;
    }
  }
}

TEST(FunctionTable, OfTwoRowsWithOneIdTheLastCounts) {
  const std::vector<Function> rows = function_rows();
  std::vector<int> ids(rows.size() + 1, -1);
  const auto signed_row = std::find_if(rows.begin(), rows.end(), [](const Function& function) {
    return function.collective == Collective::all_reduce && function.type == kInt32;
  });
  const auto unsigned_row = std::find_if(rows.begin(), rows.end(), [](const Function& function) {
    return function.collective == Collective::all_reduce && function.type == kUint32;
  });
  ids[std::size_t(signed_row - rows.begin())] = ids[std::size_t(unsigned_row - rows.begin())] = 3;
  EXPECT_EQ(invert(ids.data())[3].type, kUint32);
}

TEST(FunctionTable, AnotherLengthIsAnotherVersion) {
  std::vector<int> ids(function_rows().size() + 2, 1);
  EXPECT_DEATH(invert(ids.data()), "more rows than expected");
}

TEST(FunctionTable, AnIdWithoutAFunctionIsNamed) {
  EXPECT_DEATH(function_of(1000000), "function id 1000000");
  EXPECT_DEATH(function_of(-1), "function id -1");
}

}  // namespace
}  // namespace weft::nccl_kernels
