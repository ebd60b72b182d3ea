// The collectives of made-up ranks, in every protocol, against sums done directly.
#include "tests/rig/emulated_cuda/kernels/collectives.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "tests/rig/emulated_cuda/kernels/primitives.h"
#include "tests/unit/emulated_cuda/fake_ranks.h"

namespace weft::nccl_kernels {
namespace {

using testing::FakeRanks;
using Values = std::vector<int>;

struct Case {
  Protocol protocol;
  int ranks;
  int elements;  // of the part that each rank gives or gets
};

void PrintTo(const Case& shape, std::ostream* out) {
  *out << "protocol " << shape.protocol << ", " << shape.ranks << " ranks, " << shape.elements << " elements";
}

class CollectivesTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    shape_ = GetParam();
    ranks_ = std::make_unique<FakeRanks>(shape_.ranks);
  }

  static int value(int rank, int index) { return index % 1009 + 10007 * rank; }

  // Every rank's input, `blocks` times the elements of the case.
  void make_inputs(int blocks, int output_blocks) {
    for (int rank = 0; rank < shape_.ranks; rank++) {
      Values input(std::size_t(shape_.elements * blocks));
      for (std::size_t i = 0; i < input.size(); i++)
        input[i] = value(rank, int(i));
      inputs_.push_back(input);
      outputs_.emplace_back(std::size_t(shape_.elements * output_blocks), -1);
    }
  }

  void run(Collective collective, Algorithm algorithm = kRing, int root = 0) {
    const bool bytes = collective == Collective::all_gather || collective == Collective::broadcast;
    const Function function{collective, kSum, bytes ? kUint8 : kInt32, algorithm, shape_.protocol};
    // Twice, so that the second work begins with the steps that the first one left.
    for (int repetition = 0; repetition < 2; repetition++) {
      ranks_->run([&](const Block& block, int rank) {
        WorkCollective work{};
        work.root = std::uint32_t(root);
        work.send_buffer = reinterpret_cast<char*>(inputs_[std::size_t(rank)].data());
        work.receive_buffer = reinterpret_cast<char*>(outputs_[std::size_t(rank)].data());
        work.count_first = std::size_t(shape_.elements) * (bytes ? sizeof(int) : 1);
        work.last_channel = 1;  // which carries nothing
        // LL: what fits a slot; LL128 and Simple: a grain or two.
        work.chunk_grains = shape_.protocol == kLL ? 16 : 2;
        run_collective(block, function, work);
      });
    }
  }

  int sum(int index) const {
    int total = 0;
    for (int rank = 0; rank < shape_.ranks; rank++)
      total += value(rank, index);
    return total;
  }

  Case shape_{};
  std::unique_ptr<FakeRanks> ranks_;
  std::vector<Values> inputs_, outputs_;
};

TEST_P(CollectivesTest, RingAllReduce) {
  make_inputs(1, 1);
  run(Collective::all_reduce);
  for (const Values& output : outputs_)
    for (int i = 0; i < shape_.elements; i++)
      ASSERT_EQ(output[std::size_t(i)], sum(i)) << i;
}

TEST_P(CollectivesTest, TreeAllReduce) {
  make_inputs(1, 1);
  run(Collective::all_reduce, kTree);
  for (const Values& output : outputs_)
    for (int i = 0; i < shape_.elements; i++)
      ASSERT_EQ(output[std::size_t(i)], sum(i)) << i;
}

TEST_P(CollectivesTest, AllGather) {
  make_inputs(1, shape_.ranks);
  run(Collective::all_gather);
  for (const Values& output : outputs_)
    for (int rank = 0; rank < shape_.ranks; rank++)
      for (int i = 0; i < shape_.elements; i++)
        ASSERT_EQ(output[std::size_t(rank * shape_.elements + i)], value(rank, i)) << i;
}

TEST_P(CollectivesTest, ReduceScatter) {
  make_inputs(shape_.ranks, 1);
  run(Collective::reduce_scatter);
  for (int rank = 0; rank < shape_.ranks; rank++)
    for (int i = 0; i < shape_.elements; i++)
      ASSERT_EQ(outputs_[std::size_t(rank)][std::size_t(i)], sum(rank * shape_.elements + i)) << i;
}

TEST_P(CollectivesTest, Broadcast) {
  make_inputs(1, 1);
  run(Collective::broadcast, kRing, shape_.ranks - 1);
  for (const Values& output : outputs_)
    for (int i = 0; i < shape_.elements; i++)
      ASSERT_EQ(output[std::size_t(i)], value(shape_.ranks - 1, i)) << i;
}

TEST_P(CollectivesTest, ReduceWritesTheRootOnly) {
  make_inputs(1, 1);
  run(Collective::reduce, kRing, 1);
  for (int i = 0; i < shape_.elements; i++)
    ASSERT_EQ(outputs_[1][std::size_t(i)], sum(i)) << i;
  EXPECT_EQ(outputs_[0], Values(std::size_t(shape_.elements), -1));
}

TEST_P(CollectivesTest, EveryRankSendsToEveryOther) {
  make_inputs(shape_.ranks, shape_.ranks);
  ranks_->run([&](const Block& block, int rank) {
    std::vector<WorkSendReceive> works;
    for (int peer = 0; peer < shape_.ranks; peer++) {
      const std::size_t bytes = std::size_t(shape_.elements) * sizeof(int);
      WorkSendReceive work{};
      work.send_address = reinterpret_cast<char*>(&inputs_[std::size_t(rank)][std::size_t(peer * shape_.elements)]);
      work.receive_address = reinterpret_cast<char*>(&outputs_[std::size_t(rank)][std::size_t(peer * shape_.elements)]);
      work.send_bytes = work.receive_bytes = bytes;
      work.send_rank = work.receive_rank = peer;
      work.channels = work.send_channels = work.receive_channels = 1;
      work.flags = shape_.protocol == kLL ? 3 : 0;
      work.send_chunk = work.receive_chunk = 0x30;  // 256 bytes, less than a slot of each protocol
      works.push_back(work);
    }
    run_send_receive(block, works);
  });
  for (int rank = 0; rank < shape_.ranks; rank++)
    for (int peer = 0; peer < shape_.ranks; peer++)
      for (int i = 0; i < shape_.elements; i++)
        ASSERT_EQ(outputs_[std::size_t(rank)][std::size_t(peer * shape_.elements + i)],
                  value(peer, rank * shape_.elements + i));
}

TEST_P(CollectivesTest, StepsWrapAroundTheFlagsOfLL) {
  make_inputs(1, 1);
  ranks_->set_step(0x7ffffff0);  // a multiple of every chunk's steps, shortly before slots are written as a whole
  run(Collective::all_reduce);
  for (const Values& output : outputs_)
    for (int i = 0; i < shape_.elements; i++)
      ASSERT_EQ(output[std::size_t(i)], sum(i)) << i;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Protocol protocol : {kLL, kLL128, kSimple})
    for (const auto& [ranks, elements] : {std::pair{2, 1}, {2, 2000}, {3, 7}, {5, 2000}})
      cases.push_back({protocol, ranks, elements});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesTest, ::testing::ValuesIn(all_cases()));

TEST(Abort, AKernelWhosePeerNeverComesLeaves) {
  for (const Protocol protocol : {kLL, kLL128, kSimple}) {
    FakeRanks ranks(2);
    Values input(5000, 1), output(5000);
    std::thread kernel([&] {
      WorkCollective work{};
      work.send_buffer = reinterpret_cast<char*>(input.data());
      work.receive_buffer = reinterpret_cast<char*>(output.data());
      work.count_first = input.size();
      work.last_channel = 1;
      work.chunk_grains = 2;
      run_collective(ranks.block(0), {Collective::all_reduce, kSum, kInt32, kRing, protocol}, work);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ranks.abort();
    kernel.join();
  }
}

// The copy out of a socket may store a line's flag before the line's data.
TEST(LL128, LinesWhoseFlagCameBeforeTheirDataAreNotTaken) {
  FakeRanks ranks(2);
  ConnectionInfo& from_first = ranks.block(1).channel->peers[0]->receive[kCollectiveConnection];
  auto* words = reinterpret_cast<std::uint64_t*>(from_first.buffers[kLL128]);
  constexpr int kLines = 16, kLineWords = 16;
  const auto fill = [&](std::uint64_t value) {
    for (int word = 0; word < kLines * kLineWords; word++)
      words[word] = word % kLineWords == kLineWords - 1 ? 1 : value;  // the flag of step 0
  };
  std::vector<std::uint64_t> output(kLines * (kLineWords - 1));
  fill(7);
  std::thread receiver([&] {
    const Block block = ranks.block(1);
    PrimitivesSetup setup;
    setup.protocol = kLL128;
    setup.receive_from = {0};
    Primitives primitives(block, setup, Reduction(kSum, kUint64, 0));
    primitives.recv(reinterpret_cast<char*>(output.data()), std::ptrdiff_t(output.size()));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  fill(8);
  store_release(from_first.tail, 1);
  receiver.join();
  EXPECT_EQ(output, std::vector<std::uint64_t>(output.size(), 8));
}

TEST(Refusals, AlgorithmsAndRegistrationsThatAreNotEmulatedAreNamed) {
  FakeRanks ranks(2);
  WorkCollective work{};
  EXPECT_DEATH(run_collective(ranks.block(0), {Collective::all_gather, kSum, kUint8, kPat, kSimple}, work),
               "not emulated: algorithm 6");
  EXPECT_DEATH(run_collective(ranks.block(0), {Collective::all_reduce, kSum, 11, kRing, kSimple}, work),
               "not emulated: element type 11");
  work.flags = 2;
  EXPECT_DEATH(run_collective(ranks.block(0), {Collective::all_reduce, kSum, kInt32, kRing, kSimple}, work),
               "registered between GPUs");
}

TEST(Parts, CoverTheWholeOnceWithoutGaps) {
  WorkCollective work{};
  work.first_channel = 2;
  work.last_channel = 6;
  work.count_first = 100;
  work.count_middle = 70;
  work.count_last = 33;
  work.chunk_grains = 3 | std::uint64_t(5) << 21 | std::uint64_t(7) << 42;
  std::ptrdiff_t next = 0;
  for (int channel = 2; channel <= 6; channel++) {
    const Part part = part_of(work, channel, kSimple, 4);
    EXPECT_EQ(part.begin, next);
    EXPECT_EQ(part.total, 100 + 3 * 70 + 33);
    next += part.count;
  }
  EXPECT_EQ(next, 100 + 3 * 70 + 33);
  EXPECT_EQ(part_of(work, 2, kSimple, 4).chunk, 3 * 128);
  EXPECT_EQ(part_of(work, 3, kLL, 4).chunk, 5 * 4);
  EXPECT_EQ(part_of(work, 6, kLL128, 4).chunk, 7 * 480);
}

TEST(ChunkBytes, AreFloatsOfThreeFractionBits) {
  EXPECT_EQ(chunk_bytes(0), 0u);
  EXPECT_EQ(chunk_bytes(7), 7u);
  EXPECT_EQ(chunk_bytes(8), 8u);
  EXPECT_EQ(chunk_bytes(0x30), 256u);
  for (int code = 1; code < 256; code++)
    EXPECT_GT(chunk_bytes(std::uint8_t(code)), chunk_bytes(std::uint8_t(code - 1)));
}

}  // namespace
}  // namespace weft::nccl_kernels
