#include "tests/rig/soft_rnic/protocol/responder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/soft_rnic/simulation.h"

namespace weft::soft_rnic {
namespace {

using test::Simulation;

RequesterSettings impatient() {
  RequesterSettings settings;
  settings.mtu = 256;
  settings.timeout = 8;
  settings.retry_count = 3;
  return settings;
}

class ResponderTest : public testing::Test {
 protected:
  // Posts one request at the left end, prepared by `change`, and lets it run.
  template <class Change>
  ibv_wc run_one(ibv_wr_opcode opcode, std::uint32_t length, Change change) {
    change(test::prepare(simulation.left(), opcode, 1, 0, length));
    simulation.left().requester.post();
    simulation.run();
    EXPECT_EQ(simulation.left().sent.completions.size(), 1U);
    return simulation.left().sent.completions.empty() ? ibv_wc{} : simulation.left().sent.completions[0];
  }
  ibv_wc run_one(ibv_wr_opcode opcode, std::uint32_t length) {
    return run_one(opcode, length, [](SendRequest&) {});
  }
  void restrict_queue_pair(int access) {
    ResponderSettings settings = simulation.right().responder.settings();
    settings.access = access;
    simulation.right().responder.configure(settings);
  }

  Simulation simulation{1, {}, impatient()};
};

TEST_F(ResponderTest, AWrongKeyIsARemoteAccessError) {
  EXPECT_EQ(run_one(IBV_WR_RDMA_WRITE, 10, [](SendRequest& r) { r.remote_key = 5; }).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(simulation.right().responder.failure(), IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(simulation.right().memory.stored, 0U);
}

TEST_F(ResponderTest, AWriteBeyondTheRegionIsARemoteAccessError) {
  const auto change = [&](SendRequest& r) { r.remote_address += simulation.right().memory.bytes.size() - 9; };
  EXPECT_EQ(run_one(IBV_WR_RDMA_WRITE, 10, change).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ResponderTest, TheQueuePairsOwnRightsCount) {
  restrict_queue_pair(IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(run_one(IBV_WR_RDMA_WRITE, 10).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ResponderTest, ReadsNeedTheRight) {
  restrict_queue_pair(IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(run_one(IBV_WR_RDMA_READ, 10).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ResponderTest, AtomicsNeedTheRight) {
  restrict_queue_pair(IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(run_one(IBV_WR_ATOMIC_FETCH_AND_ADD, 8).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ResponderTest, AtomicsMustBeAligned) {
  const auto change = [](SendRequest& r) { r.remote_address += 4; };
  EXPECT_EQ(run_one(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, change).status, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(ResponderTest, CompareAndSwapSwapsOnlyOnEquality) {
  auto* word = reinterpret_cast<std::uint64_t*>(simulation.right().memory.bytes.data());
  *word = 40;
  run_one(IBV_WR_ATOMIC_CMP_AND_SWP, 8, [](SendRequest& r) {
    r.compare = 41;
    r.swap_or_add = 99;
  });
  EXPECT_EQ(*word, 40U);
  test::prepare(simulation.left(), IBV_WR_ATOMIC_CMP_AND_SWP, 2, 0, 8).compare = 40;
  simulation.left().requester.prepare().swap_or_add = 99;
  simulation.left().requester.post();
  simulation.run();
  EXPECT_EQ(*word, 99U);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(simulation.left().memory.bytes.data()), 40U) << "the value before";
}

TEST_F(ResponderTest, AnEmptyWriteNeedsNoKey) {
  EXPECT_EQ(run_one(IBV_WR_RDMA_WRITE, 0, [](SendRequest& r) { r.remote_key = 0; }).status, IBV_WC_SUCCESS);
}

TEST_F(ResponderTest, ASendWaitsForItsReceive) {
  test::prepare(simulation.left(), IBV_WR_SEND, 1, 0, 600);
  simulation.left().requester.post();
  simulation.run(5 * kMillisecond);
  EXPECT_TRUE(simulation.left().sent.completions.empty());
  EXPECT_GT(simulation.right().responder.counters().receiver_not_ready, 0U);
  test::post_receive(simulation.right(), 9, 0, 600);
  simulation.run();
  ASSERT_EQ(simulation.right().received.completions.size(), 1U);
  EXPECT_EQ(simulation.right().received.completions[0].byte_len, 600U);
}

TEST_F(ResponderTest, AWriteWithImmediateTakesItsReceiveAtTheEnd) {
  test::prepare(simulation.left(), IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 600);
  simulation.left().requester.post();
  simulation.run(5 * kMillisecond);
  EXPECT_EQ(simulation.right().memory.stored, 512U) << "all but the last packet is taken";
  test::post_receive(simulation.right(), 9);
  simulation.run();
  ASSERT_EQ(simulation.right().received.completions.size(), 1U);
  EXPECT_EQ(simulation.right().received.completions[0].byte_len, 600U);
  EXPECT_EQ(simulation.right().memory.stored, 600U);
}

TEST_F(ResponderTest, AMessageLongerThanItsReceiveFailsOnBothSides) {
  test::post_receive(simulation.right(), 9, 0, 100);
  EXPECT_EQ(run_one(IBV_WR_SEND, 101).status, IBV_WC_REM_INV_REQ_ERR);
  ASSERT_EQ(simulation.right().received.completions.size(), 1U);
  EXPECT_EQ(simulation.right().received.completions[0].status, IBV_WC_LOC_LEN_ERR);
}

TEST_F(ResponderTest, SolicitedIsPassedOn) {
  test::post_receive(simulation.right(), 1, 0, 10);
  test::post_receive(simulation.right(), 2, 0, 10);
  test::prepare(simulation.left(), IBV_WR_SEND, 1, 0, 10);
  simulation.left().requester.post();
  test::prepare(simulation.left(), IBV_WR_SEND, 2, 0, 10).solicited = true;
  simulation.left().requester.post();
  simulation.run();
  EXPECT_THAT(simulation.right().received.solicitations, testing::ElementsAre(false, true));
}

TEST_F(ResponderTest, AReadMakesLateWritesVisibleFirst) {
  run_one(IBV_WR_RDMA_READ, 10);
  EXPECT_EQ(simulation.right().memory.reads, 1);
}

TEST_F(ResponderTest, ASharedQueueTellsWhenItRunsLow) {
  ReceiveQueue& receives = simulation.right().receives;
  for (std::uint64_t id = 0; id < 4; ++id)
    test::post_receive(simulation.right(), id, 0, 10);
  receives.set_limit(3);
  EXPECT_FALSE(receives.take_limit_event());
  receives.take();
  EXPECT_FALSE(receives.take_limit_event()) << "three are left, the limit is three";
  receives.take();
  EXPECT_TRUE(receives.take_limit_event());
  EXPECT_FALSE(receives.take_limit_event());
  EXPECT_EQ(receives.limit(), 0U) << "one event an arming";
}

TEST_F(ResponderTest, DeregisteredReceiveMemoryIsNotWritten) {
  test::post_receive(simulation.right(), 9, 0, 100);
  const auto& bytes = simulation.right().memory.bytes;
  simulation.right().receives.revoke({bytes.data(), bytes.data() + bytes.size()});
  run_one(IBV_WR_SEND, 50);
  EXPECT_EQ(simulation.right().memory.stored, 0U);
}

}  // namespace
}  // namespace weft::soft_rnic
