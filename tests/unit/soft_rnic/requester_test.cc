#include "tests/rig/soft_rnic/protocol/requester.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/soft_rnic/simulation.h"

namespace weft::soft_rnic {
namespace {

using test::CompletionList;

constexpr std::uint32_t kMtu = 256;
constexpr std::uint32_t kFirstPsn = 100;

class RequesterTest : public testing::Test {
 protected:
  RequesterTest() : requester(completions, 0x11, 32, false) {
    requester.settings().mtu = kMtu;
    requester.settings().window_packets = 8;
    requester.settings().timeout = 10;
    requester.settings().retry_count = 2;
    requester.settings().receiver_retry_count = 2;
    requester.start_at(kFirstPsn);
  }

  void post(ibv_wr_opcode opcode, std::uint64_t id, std::uint32_t length, bool signaled = true) {
    SendRequest& request = requester.prepare();
    request = {};
    request.id = id;
    request.opcode = opcode;
    request.signaled = signaled;
    request.length = length;
    request.memory.count = 1;
    request.memory.pieces[0] = {memory.data(), length};
    requester.post();
  }

  // The packet numbers that leave now.
  std::vector<std::uint32_t> transmit() {
    std::vector<std::uint32_t> numbers;
    OutgoingPacket packet;
    while (requester.take(packet)) {
      std::vector<std::uint8_t> bytes(packet.header.begin(), packet.header.end());
      bytes.resize(packet.udp_payload_size());
      last_packet = *parse_packet(bytes);
      last_packet.payload = {};
      numbers.push_back(last_packet.base.psn);
    }
    requester.commit(numbers.size(), now);
    return numbers;
  }

  void answer(std::uint8_t syndrome, std::uint32_t psn) { requester.on_acknowledge(psn, {syndrome, 0}, now); }

  std::vector<ibv_wc_status> statuses() const {
    std::vector<ibv_wc_status> result;
    for (const ibv_wc& completion : completions.completions)
      result.push_back(completion.status);
    return result;
  }

  Nanoseconds now = kMillisecond;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(64 * 1024);
  CompletionList completions;
  Requester requester;
  Packet last_packet;
};

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(RequesterTest, NeverExceedsTheWindow) {
  post(IBV_WR_RDMA_WRITE, 1, 20 * kMtu);
  EXPECT_THAT(transmit(), testing::SizeIs(8));
  EXPECT_TRUE(last_packet.base.acknowledge_request) << "the packet that fills the window must ask";
  answer(kSyndromeAcknowledge, kFirstPsn + 2);
  EXPECT_THAT(transmit(), ElementsAre(108, 109, 110));
}

TEST_F(RequesterTest, CompletesOnTheLastAcknowledgementOnly) {
  post(IBV_WR_RDMA_WRITE, 7, 3 * kMtu);
  transmit();
  answer(kSyndromeAcknowledge, kFirstPsn + 1);
  EXPECT_THAT(completions.completions, IsEmpty());
  answer(kSyndromeAcknowledge, kFirstPsn + 2);
  ASSERT_THAT(statuses(), ElementsAre(IBV_WC_SUCCESS));
  EXPECT_EQ(completions.completions[0].wr_id, 7U);
  EXPECT_EQ(requester.deadline(), kNever) << "nothing is outstanding any more";
}

TEST_F(RequesterTest, UnsignaledRequestsCompleteSilently) {
  post(IBV_WR_RDMA_WRITE, 1, 10, false);
  post(IBV_WR_RDMA_WRITE, 2, 10);
  transmit();
  answer(kSyndromeAcknowledge, kFirstPsn + 1);
  ASSERT_THAT(statuses(), ElementsAre(IBV_WC_SUCCESS));
  EXPECT_EQ(completions.completions[0].wr_id, 2U);
}

TEST_F(RequesterTest, AcknowledgementsOfPacketsNeverSentAreIgnored) {
  post(IBV_WR_RDMA_WRITE, 1, 4 * kMtu);
  transmit();
  answer(kSyndromeAcknowledge, kFirstPsn + 9);
  EXPECT_THAT(completions.completions, IsEmpty());
  answer(kSyndromePsnError, kFirstPsn + 9);
  EXPECT_THAT(transmit(), IsEmpty());
}

TEST_F(RequesterTest, GoesBackToTheNumberInTheNegativeAcknowledgement) {
  post(IBV_WR_RDMA_WRITE, 1, 6 * kMtu);
  transmit();
  answer(kSyndromePsnError, kFirstPsn + 2);
  EXPECT_THAT(transmit(), ElementsAre(102, 103, 104, 105));
}

TEST_F(RequesterTest, GivesUpAfterRetryCountFurtherTries) {
  post(IBV_WR_RDMA_WRITE, 1, 10);
  post(IBV_WR_RDMA_WRITE, 2, 10, false);
  const Nanoseconds begin = now;
  EXPECT_THAT(transmit(), ElementsAre(100, 101));
  for (int retry = 0; retry < 2; ++retry) {
    now = requester.deadline();
    requester.on_time(now);
    EXPECT_FALSE(requester.failure());
    EXPECT_THAT(transmit(), ElementsAre(100, 101));
  }
  now = requester.deadline();
  requester.on_time(now);
  EXPECT_EQ(requester.failure(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(now - begin, 3 * (Nanoseconds{4096} << 10));
  requester.flush();
  EXPECT_THAT(statuses(), ElementsAre(IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(completions.completions[0].vendor_err, 129U);
  EXPECT_THAT(transmit(), IsEmpty());
}

TEST_F(RequesterTest, ProgressRenewsTheTries) {
  post(IBV_WR_RDMA_WRITE, 1, 8 * kMtu);
  transmit();
  for (std::uint32_t packet = 0; packet < 7; ++packet) {
    for (int retry = 0; retry < 2; ++retry) {
      now = requester.deadline();
      requester.on_time(now);
      transmit();
    }
    answer(kSyndromeAcknowledge, kFirstPsn + packet);
  }
  EXPECT_FALSE(requester.failure());
}

TEST_F(RequesterTest, TimeoutZeroWaitsForEver) {
  requester.settings().timeout = 0;
  post(IBV_WR_RDMA_WRITE, 1, 10);
  transmit();
  EXPECT_EQ(requester.deadline(), kNever);
}

TEST_F(RequesterTest, ALongQueueIsNotTakenForLoss) {
  const Nanoseconds nominal = Nanoseconds{4096} << 10;
  for (std::uint32_t packet = 0; packet < 20; ++packet) {
    post(IBV_WR_RDMA_WRITE, packet, 10);
    transmit();
    now += nominal * 9 / 10;
    answer(kSyndromeAcknowledge, kFirstPsn + packet);
  }
  post(IBV_WR_RDMA_WRITE, 99, 10);
  transmit();
  EXPECT_GT(requester.deadline() - now, 2 * nominal);
  EXPECT_LE(requester.deadline() - now, 4 * nominal) << "the specification allows no more";
}

TEST_F(RequesterTest, WaitsForAReceiverThatIsNotReady) {
  post(IBV_WR_SEND, 1, 10);
  transmit();
  answer(kSyndromeReceiverNotReady | 12, kFirstPsn);
  EXPECT_THAT(transmit(), IsEmpty());
  EXPECT_EQ(requester.deadline(), now + 640 * kMicrosecond) << "timer code 12";
  now = requester.deadline();
  requester.on_time(now);
  EXPECT_THAT(transmit(), ElementsAre(100));
  for (int retry = 0; retry < 2; ++retry) {
    answer(kSyndromeReceiverNotReady | 1, kFirstPsn);
    now = std::max(now, std::min(requester.deadline(), now + kMillisecond));
    requester.on_time(now);
    transmit();
  }
  EXPECT_EQ(requester.failure(), IBV_WC_RNR_RETRY_EXC_ERR);
}

struct Refusal {
  std::uint8_t syndrome;
  ibv_wc_status status;
};
class Refusals : public RequesterTest, public testing::WithParamInterface<Refusal> {};

TEST_P(Refusals, BreakTheConnectionWithTheirStatus) {
  post(IBV_WR_RDMA_WRITE, 1, 10);
  post(IBV_WR_RDMA_WRITE, 2, 10);
  transmit();
  answer(GetParam().syndrome, kFirstPsn + 1);
  EXPECT_EQ(requester.failure(), GetParam().status);
  EXPECT_THAT(statuses(), ElementsAre(IBV_WC_SUCCESS, GetParam().status)) << "what came before it has arrived";
}

INSTANTIATE_TEST_SUITE_P(Kinds, Refusals,
                         testing::Values(Refusal{kSyndromeInvalidRequest, IBV_WC_REM_INV_REQ_ERR},
                                         Refusal{kSyndromeRemoteAccess, IBV_WC_REM_ACCESS_ERR},
                                         Refusal{kSyndromeRemoteOperation, IBV_WC_REM_OP_ERR}));

TEST_F(RequesterTest, AnAcknowledgementDoesNotCompleteAnOpenRead) {
  post(IBV_WR_RDMA_WRITE, 1, 10);
  post(IBV_WR_RDMA_READ, 2, 2 * kMtu);
  post(IBV_WR_RDMA_WRITE, 3, 10);
  EXPECT_THAT(transmit(), ElementsAre(100, 101, 103)) << "a READ takes as many numbers as its response has packets";
  answer(kSyndromeAcknowledge, kFirstPsn + 3);
  EXPECT_THAT(statuses(), ElementsAre(IBV_WC_SUCCESS));
  EXPECT_THAT(transmit(), ElementsAre(101, 103)) << "the response must be lost, so the READ is asked for again";
}

TEST_F(RequesterTest, OneReadAtATimeWhereOneIsAllowed) {
  requester.settings().max_outstanding_reads = 1;
  post(IBV_WR_RDMA_READ, 1, 10);
  post(IBV_WR_RDMA_READ, 2, 10);
  EXPECT_THAT(transmit(), ElementsAre(100));
}

TEST_F(RequesterTest, AFenceWaitsForReads) {
  requester.settings().max_outstanding_reads = 4;
  post(IBV_WR_RDMA_READ, 1, 10);
  SendRequest& fenced = requester.prepare();
  fenced = {};
  fenced.opcode = IBV_WR_RDMA_WRITE;
  fenced.fenced = true;
  requester.post();
  EXPECT_THAT(transmit(), ElementsAre(100));
}

TEST_F(RequesterTest, WhatTheNetworkRefusedComesAgain) {
  post(IBV_WR_RDMA_WRITE, 1, 4 * kMtu);
  OutgoingPacket packet;
  while (requester.take(packet)) {
  }
  requester.commit(1, now);
  EXPECT_THAT(transmit(), ElementsAre(101, 102, 103));
  requester.take(packet);
  EXPECT_FALSE(packet.retransmitted);
}

TEST_F(RequesterTest, DrainingFinishesWhatHasBegun) {
  post(IBV_WR_RDMA_WRITE, 1, 12 * kMtu);
  post(IBV_WR_RDMA_WRITE, 2, 10);
  transmit();
  requester.set_draining(true);
  EXPECT_FALSE(requester.drained());
  answer(kSyndromeAcknowledge, kFirstPsn + 7);
  EXPECT_THAT(transmit(), ElementsAre(108, 109, 110, 111));
  answer(kSyndromeAcknowledge, kFirstPsn + 11);
  EXPECT_THAT(transmit(), IsEmpty());
  EXPECT_TRUE(requester.drained());
  requester.set_draining(false);
  EXPECT_THAT(transmit(), ElementsAre(112));
}

TEST_F(RequesterTest, ALocalErrorIsReportedInItsTurn) {
  post(IBV_WR_RDMA_WRITE, 1, 10);
  SendRequest& broken = requester.prepare();
  broken = {};
  broken.id = 2;
  broken.local_error = IBV_WC_LOC_PROT_ERR;
  requester.post();
  EXPECT_THAT(transmit(), ElementsAre(100));
  EXPECT_FALSE(requester.failure());
  answer(kSyndromeAcknowledge, kFirstPsn);
  EXPECT_EQ(requester.failure(), IBV_WC_LOC_PROT_ERR);
  EXPECT_THAT(statuses(), ElementsAre(IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR));
}

TEST_F(RequesterTest, MemoryThatIsDeregisteredIsNotReadAgain) {
  post(IBV_WR_RDMA_WRITE, 1, 10);
  transmit();
  requester.revoke({memory.data(), memory.data() + memory.size()});
  EXPECT_EQ(requester.failure(), IBV_WC_LOC_PROT_ERR);
  EXPECT_THAT(transmit(), IsEmpty());
}

TEST_F(RequesterTest, TheDefectNeverRetransmits) {
  requester.settings().never_retransmit = true;
  post(IBV_WR_RDMA_WRITE, 1, 3 * kMtu);
  transmit();
  answer(kSyndromePsnError, kFirstPsn + 1);
  EXPECT_THAT(transmit(), IsEmpty());
  while (!requester.failure()) {
    now = requester.deadline();
    requester.on_time(now);
    EXPECT_THAT(transmit(), IsEmpty());
  }
  EXPECT_EQ(requester.failure(), IBV_WC_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace weft::soft_rnic
