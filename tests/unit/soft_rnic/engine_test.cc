// Parts of the engine that need no network: completion queues, memory regions, state changes, the delay line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "tests/rig/soft_rnic/engine/completion_queue.h"
#include "tests/rig/soft_rnic/engine/delay_line.h"
#include "tests/rig/soft_rnic/engine/memory_regions.h"
#include "tests/rig/soft_rnic/engine/state_transition.h"

namespace weft::soft_rnic {
namespace {

ibv_wc completion(std::uint64_t id, std::uint32_t queue_pair = 1, ibv_wc_status status = IBV_WC_SUCCESS) {
  ibv_wc result{};
  result.wr_id = id;
  result.qp_num = queue_pair;
  result.status = status;
  return result;
}

bool readable(const CompletionChannel& channel) {
  pollfd source{channel.descriptor(), POLLIN, 0};
  return poll(&source, 1, 0) == 1;
}

TEST(CompletionQueue, GivesBackInOrder) {
  CompletionQueue queue(nullptr, 4, nullptr);
  for (std::uint64_t id = 0; id < 3; ++id)
    queue.add(completion(id), false);
  ibv_wc taken[4];
  ASSERT_EQ(queue.poll(2, taken), 2);
  EXPECT_EQ(taken[0].wr_id, 0U);
  EXPECT_EQ(taken[1].wr_id, 1U);
  ASSERT_EQ(queue.poll(4, taken), 1);
  EXPECT_EQ(taken[0].wr_id, 2U);
  EXPECT_EQ(queue.poll(4, taken), 0);
}

TEST(CompletionQueue, OverrunIsReportedOnceAndBreaksTheQueue) {
  CompletionQueue queue(nullptr, 1, nullptr);
  queue.add(completion(1), false);
  EXPECT_FALSE(queue.take_overrun());
  queue.add(completion(2), false);
  EXPECT_TRUE(queue.take_overrun());
  EXPECT_FALSE(queue.take_overrun());
  ibv_wc taken[2];
  EXPECT_EQ(queue.poll(2, taken), 1);
  EXPECT_LT(queue.poll(2, taken), 0);
}

TEST(CompletionQueue, OneEventAnArming) {
  CompletionChannel channel;
  ibv_cq handle{};
  CompletionQueue queue(&handle, 8, &channel);
  queue.add(completion(1), false);
  EXPECT_FALSE(readable(channel)) << "not armed";
  ibv_wc taken[8];
  queue.poll(8, taken);
  queue.request_notification(false);
  EXPECT_FALSE(readable(channel));
  queue.add(completion(2), false);
  queue.add(completion(3), false);
  EXPECT_EQ(channel.wait(), &handle);
  EXPECT_FALSE(readable(channel));
}

TEST(CompletionQueue, ArmingWithACompletionWaitingRaisesAtOnce) {
  CompletionChannel channel;
  ibv_cq handle{};
  CompletionQueue queue(&handle, 8, &channel);
  queue.add(completion(1), false);
  queue.request_notification(false);
  EXPECT_TRUE(readable(channel));
}

TEST(CompletionQueue, SolicitedOnlyWaitsForSolicitedOrFailed) {
  CompletionChannel channel;
  CompletionQueue queue(nullptr, 8, &channel);
  queue.request_notification(true);
  queue.add(completion(1), false);
  EXPECT_FALSE(readable(channel));
  queue.add(completion(2), true);
  EXPECT_TRUE(readable(channel));

  CompletionChannel other;
  CompletionQueue failing(nullptr, 8, &other);
  failing.request_notification(true);
  failing.add(completion(1, 1, IBV_WC_WR_FLUSH_ERR), false);
  EXPECT_TRUE(readable(other));
}

TEST(CompletionQueue, ForgetsOneQueuePairOnly) {
  CompletionQueue queue(nullptr, 8, nullptr);
  queue.add(completion(1, 17), false);
  queue.add(completion(2, 18), false);
  queue.add(completion(3, 17), false);
  queue.forget(17);
  ibv_wc taken[8];
  ASSERT_EQ(queue.poll(8, taken), 1);
  EXPECT_EQ(taken[0].wr_id, 2U);
}

class Regions : public testing::Test {
 protected:
  static MemoryRegion region_of(std::vector<std::uint8_t>& bytes, int access, bool gpu = false) {
    return {kDomain, bytes.data(), kAddress, bytes.size(), access, gpu};
  }
  static constexpr std::uint64_t kAddress = 0x7000;
  static inline const int domain_object = 0;
  static inline const void* const kDomain = &domain_object;
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(100);
};

TEST_F(Regions, ChecksKeyDomainBoundsAndRights) {
  MemoryRegions regions({});
  const std::uint32_t key = regions.add(region_of(bytes, IBV_ACCESS_REMOTE_WRITE));
  const auto find = [&](std::uint32_t with, std::uint64_t address, std::uint64_t length, int access) {
    return regions.find(kDomain, with, address, length, access);
  };
  EXPECT_EQ(find(key, kAddress, 100, IBV_ACCESS_REMOTE_WRITE), bytes.data());
  EXPECT_EQ(find(key, kAddress + 99, 1, 0), bytes.data() + 99);
  EXPECT_EQ(find(key, kAddress + 99, 2, 0), nullptr);
  EXPECT_EQ(find(key, kAddress - 1, 1, 0), nullptr);
  EXPECT_EQ(find(key, ~0ULL, 2, 0), nullptr) << "must not wrap around";
  EXPECT_EQ(find(key, kAddress, ~0ULL, 0), nullptr);
  EXPECT_EQ(find(key, kAddress, 1, IBV_ACCESS_REMOTE_READ), nullptr);
  EXPECT_EQ(find(key + 1, kAddress, 1, 0), nullptr);
  EXPECT_EQ(find(0, kAddress, 1, 0), nullptr);
  EXPECT_EQ(regions.find(nullptr, key, kAddress, 1, 0), nullptr) << "another protection domain";
}

TEST_F(Regions, AnOldKeyDoesNotOpenWhatCameAfterIt) {
  MemoryRegions regions({});
  const std::uint32_t old_key = regions.add(region_of(bytes, 0));
  regions.remove(old_key);
  const std::uint32_t new_key = regions.add(region_of(bytes, 0));
  EXPECT_NE(old_key, new_key);
  EXPECT_EQ(regions.find(kDomain, old_key, kAddress, 1, 0), nullptr);
}

TEST_F(Regions, LateGpuWritesStayInvisibleUntilFlushed) {
  MemoryRegions regions({.late_gpu_writes = true});
  std::vector<std::uint8_t> host(100);
  regions.add(region_of(bytes, 0, true));
  regions.add({kDomain, host.data(), kAddress + 1000, host.size(), 0, false});
  const std::vector<std::uint8_t> payload = {1, 2, 3};
  regions.store(bytes.data() + 10, payload);
  regions.store(host.data() + 10, payload);
  EXPECT_EQ(bytes[10], 0) << "GPU memory must not change before the flush";
  EXPECT_EQ(host[10], 1) << "host memory changes at once";
  regions.make_visible();
  EXPECT_EQ(bytes[12], 3);
}

TEST_F(Regions, LateWritesDoNotOutliveTheirRegion) {
  MemoryRegions regions({.late_gpu_writes = true});
  const std::uint32_t key = regions.add(region_of(bytes, 0, true));
  regions.store(bytes.data(), std::vector<std::uint8_t>{9});
  regions.remove(key);
  bytes[0] = 0;
  regions.make_visible();
  EXPECT_EQ(bytes[0], 0);
}

TEST_F(Regions, TheCorruptingDefectChangesBulkDataOnly) {
  MemoryRegions regions({.corrupt_payload = true});
  std::vector<std::uint8_t> target(4096);
  const std::vector<std::uint8_t> small(64, 7);
  const std::vector<std::uint8_t> bulk(4096, 7);
  int wrong_small = 0;
  int wrong_bulk = 0;
  for (int packet = 0; packet < 200; ++packet) {
    regions.store(target.data(), small);
    wrong_small += std::equal(small.begin(), small.end(), target.begin()) ? 0 : 1;
    regions.store(target.data(), bulk);
    wrong_bulk += target == bulk ? 0 : 1;
  }
  EXPECT_EQ(wrong_small, 0);
  EXPECT_EQ(wrong_bulk, 4);
}

TEST(StateTransition, TheUsualWayIsOpen) {
  constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  // The masks that NCCL's IB transport uses.
  EXPECT_EQ(check_transition(IBV_QPS_RESET, IBV_QPS_INIT, 0x39), 0);
  EXPECT_EQ(check_transition(IBV_QPS_INIT, IBV_QPS_RTR, 0x129181), 0);
  EXPECT_EQ(check_transition(IBV_QPS_RTR, IBV_QPS_RTS, 0x12e01), 0);
  EXPECT_EQ(kInit, 0x39);
}

TEST(StateTransition, EveryRequiredAttributeIsRequired) {
  for (const auto& [from, to, mask] : {std::tuple{IBV_QPS_RESET, IBV_QPS_INIT, 0x39},
                                       {IBV_QPS_INIT, IBV_QPS_RTR, 0x129181},
                                       {IBV_QPS_RTR, IBV_QPS_RTS, 0x12e01}}) {
    for (int bit = 2; bit <= 0x100000; bit <<= 1) {
      if ((mask & bit) == 0) continue;
      EXPECT_EQ(check_transition(from, to, mask & ~bit), EINVAL) << from << "->" << to << " without " << bit;
    }
  }
}

TEST(StateTransition, StatesCannotBeSkipped) {
  EXPECT_EQ(check_transition(IBV_QPS_RESET, IBV_QPS_RTR, 0x1fffff), EINVAL);
  EXPECT_EQ(check_transition(IBV_QPS_INIT, IBV_QPS_RTS, 0x1fffff), EINVAL);
  EXPECT_EQ(check_transition(IBV_QPS_ERR, IBV_QPS_RTS, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(check_transition(IBV_QPS_ERR, IBV_QPS_RESET, IBV_QP_STATE), 0);
}

TEST(StateTransition, ANewAddressNeedsADrainedSendQueue) {
  EXPECT_EQ(check_transition(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_AV), EINVAL);
  EXPECT_EQ(check_transition(IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_STATE), 0);
  EXPECT_EQ(check_transition(IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_AV), 0);
  EXPECT_EQ(check_transition(IBV_QPS_SQD, IBV_QPS_RTS, IBV_QP_STATE), 0);
}

TEST(DelayLine, KeepsOrderAlsoWhenTheDelayShrinks) {
  DelayLine line;
  const std::uint8_t first[1] = {1};
  const std::uint8_t second[1] = {2};
  Arrival arrival;
  arrival.udp_payload = first;
  line.add(arrival, 100);
  arrival.udp_payload = second;
  line.add(arrival, 50);
  std::vector<int> seen;
  const auto visit = [&](const Arrival& released) { seen.push_back(released.udp_payload[0]); };
  line.release(99, visit);
  EXPECT_TRUE(seen.empty());
  line.release(100, visit);
  EXPECT_THAT(seen, testing::ElementsAre(1, 2));
  EXPECT_EQ(line.deadline(), kNever);
}

}  // namespace
}  // namespace weft::soft_rnic
