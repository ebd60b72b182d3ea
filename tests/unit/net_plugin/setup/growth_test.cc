// Connections that get more paths while they are used, and connections over several NICs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/unit/net_plugin/fake/carrier.h"
#include "tests/unit/net_plugin/fake/loopback.h"

namespace weft::setup {
namespace {

using fake::Carrier;
using fake::Loopback;
using fake::LoopbackShape;
using testing::HasSubstr;
using transfer::Progress;
using transfer::Registration;
using transfer::Request;

LoopbackShape growing() {
  LoopbackShape shape;
  shape.all_paths_at_once = false;
  return shape;
}

TEST(Growth, AConnectionBeginsWithOnePathAndGetsMoreOnceItHasSentEnough) {
  Loopback loop({}, growing());
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  EXPECT_EQ(sender->link().paths.size(), 1u);
  Carrier carrier(loop, 2 << 20);
  ASSERT_TRUE(carrier.carry(*sender, *receiver, 1000));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_TRUE(carrier.carry(*sender, *receiver, 1000));
  EXPECT_EQ(sender->link().paths.size(), 1u) << "two kilobytes justify no more";
  ASSERT_TRUE(carrier.carry(*sender, *receiver, 2 << 20));
  ASSERT_TRUE(loop.wait_for_growth()) << loop.log_text();
  ASSERT_TRUE(carrier.carry(*sender, *receiver, 2 << 20));
  EXPECT_EQ(sender->link().paths.size(), 24u);
  EXPECT_EQ(receiver->link().paths.size(), 24u);
  const auto posted = loop.verbs->posted_by_queue_pair();
  for (const transfer::DataPath& path : sender->link().paths)
    EXPECT_GT(posted.at(path.qp->qp_num), 1u) << "source port " << path.port;
}

// Whatever is under way at that moment arrives, with and without shared receive queues.
class GrowsUnderLoad : public testing::TestWithParam<int> {};

TEST_P(GrowsUnderLoad, EveryByteIsRight) {
  LoopbackShape shape = growing();
  shape.max_srq = GetParam();
  settings::Settings settings;
  settings.grow_after_bytes = 200'000;
  Loopback loop(settings, shape);
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  Carrier carrier(loop, 300'000);
  int rounds = 0;
  for (; rounds < 20'000 && (sender->link().paths.size() == 1 || rounds % 50 != 49); rounds++)
    ASSERT_TRUE(carrier.carry(*sender, *receiver, std::size_t(rounds * 7919) % 300'000));
  EXPECT_EQ(sender->link().paths.size(), 24u);
  EXPECT_EQ(loop.verbs->receiver_not_ready(), 0);
}

INSTANTIATE_TEST_SUITE_P(ReceiveQueues, GrowsUnderLoad, testing::Values(1024, 0));

TEST(Growth, TheSamePortsWhetherAtOnceOrLater) {
  std::vector<std::uint16_t> at_once, later;
  {
    Loopback loop;
    auto ends = loop.connect();
    ASSERT_TRUE(ends);
    for (const transfer::DataPath& path : ends->first->link().paths)
      at_once.push_back(path.port);
  }
  settings::Settings settings;
  settings.grow_after_bytes = 1;
  Loopback loop(settings, growing());
  auto ends = loop.connect();
  ASSERT_TRUE(ends);
  Carrier carrier(loop, 1000);
  ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 1000));
  ASSERT_TRUE(loop.wait_for_growth());
  ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 1000));
  for (const transfer::DataPath& path : ends->first->link().paths)
    later.push_back(path.port);
  EXPECT_EQ(at_once, later);
}

// A NIC without queue pairs left, at either end: the connection goes on with what it has and says so.
TEST(Growth, ThatFailsCostsNothingButTheLine) {
  settings::Settings settings;
  settings.grow_after_bytes = 1;
  LoopbackShape shape = growing();
  shape.queue_pairs_left = 30;  // the sender's 23 more fit, the receiver's don't
  Loopback loop(settings, shape);
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  Carrier carrier(loop, 100'000);
  ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 1000));
  for (int look = 0; look < 5000 && loop.log_text().find("goes on with 1 paths") == std::string::npos; look++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(loop.log_text(), HasSubstr("goes on with 1 paths"));
  EXPECT_THAT(loop.log_text(), HasSubstr("ibv_create_qp"));
  EXPECT_THAT(loop.log_text(), HasSubstr("ENOMEM"));
  ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 100'000));
  EXPECT_EQ(ends->first->link().paths.size(), 1u);
}

TEST(Growth, ClosingInTheMiddleLeavesNothingBehind) {
  settings::Settings settings;
  settings.grow_after_bytes = 1;
  for (int delay_us = 0; delay_us < 40'000; delay_us += 2500) {
    Loopback loop(settings, growing());
    {
      auto ends = loop.connect();
      ASSERT_TRUE(ends) << ends.error().text();
      Carrier carrier(loop, 1000);
      ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 1000));
      std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    }
    for (const auto& session : {loop.sender_session, loop.receiver_session}) {
      loop.control->call(session, [&] { session->say_closing(); });
      loop.control->remove(session);
    }
    loop.engines.clear();
    loop.sender_session.reset();
    loop.receiver_session.reset();
    loop.control.reset();
    EXPECT_EQ(loop.verbs->objects(), 0) << "closed after " << delay_us << " us";
  }
}

struct Sides {
  int sending, receiving;
};

void PrintTo(const Sides& sides, std::ostream* out) {
  *out << sides.sending << " to " << sides.receiving;
}

// One connection over several NICs on either side: every NIC carries a part, with keys of its own (the fake NIC checks
// them).
class MergedDevices : public testing::TestWithParam<Sides> {};

TEST_P(MergedDevices, EveryNicCarriesAPart) {
  const Sides sides = GetParam();
  settings::Settings settings;
  settings.paths = 4;
  for (const bool at_once : {true, false}) {
    LoopbackShape shape;
    shape.devices = sides.sending;
    shape.receiving_devices = sides.receiving;
    shape.all_paths_at_once = at_once;
    settings.grow_after_bytes = 1;
    Loopback loop(settings, shape);
    auto ends = loop.connect();
    ASSERT_TRUE(ends) << ends.error().text();
    auto [sender, receiver] = *ends;
    Carrier carrier(loop, 4 << 20);
    ASSERT_TRUE(carrier.carry(*sender, *receiver, 5000));
    if (!at_once) {
      EXPECT_EQ(sender->link().paths.size(), std::size_t(std::max(sides.sending, sides.receiving)));
      ASSERT_TRUE(loop.wait_for_growth()) << loop.log_text();
    }
    for (const std::size_t size : {4 << 20, 0, 1, 300'000})
      ASSERT_TRUE(carrier.carry(*sender, *receiver, size));
    EXPECT_EQ(sender->link().paths.size(), 4u * std::size_t(std::max(sides.sending, sides.receiving)));
    std::vector<int> sending(std::size_t(sides.sending), 0), receiving(std::size_t(sides.receiving), 0);
    const auto posted = loop.verbs->posted_by_queue_pair();
    for (const transfer::DataPath& path : sender->link().paths) {
      sending[path.device] += int(posted.at(path.qp->qp_num));
      receiving[path.peer_device] += int(posted.at(path.qp->qp_num));
    }
    for (const int pieces : sending)
      EXPECT_GT(pieces, 4);
    for (const int pieces : receiving)
      EXPECT_GT(pieces, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Sides, MergedDevices,
                         testing::Values(Sides{2, 2}, Sides{1, 2}, Sides{2, 1}, Sides{3, 2}, Sides{8, 8}));

// Each NIC may have written to the GPU's memory, so each is asked.
TEST(MergedDevicesFlush, ReadsThroughEveryNic) {
  LoopbackShape shape;
  shape.devices = 2;
  shape.device_memory = true;
  Loopback loop({}, shape);
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  Carrier carrier(loop, 100'000, true);
  ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 100'000));
  loop.verbs->hold();
  const transfer::Receive offer = carrier.received();
  Request* flush = nullptr;
  ASSERT_EQ(ends->second->flush(&offer, 1, &flush), Progress::done);
  ASSERT_NE(flush, nullptr);
  ASSERT_EQ(loop.verbs->held(), 2u);
  EXPECT_EQ(ends->second->test(*flush, nullptr), Progress::not_yet);
  loop.verbs->deliver(0);
  EXPECT_EQ(ends->second->test(*flush, nullptr), Progress::not_yet);
  loop.verbs->deliver(0);
  EXPECT_EQ(ends->second->test(*flush, nullptr), Progress::done);
  loop.verbs->release();
}

// The two NICs have different firmware: both ends of every path, later ones too, use what both can.
TEST(Extensions, AreWhatBothNicsCan) {
  for (const bool enabled : {true, false}) {
    settings::Settings settings;
    settings.ib_ece_enable = enabled;
    settings.grow_after_bytes = 1;
    LoopbackShape shape = growing();
    shape.extensions = {0x15b3, 0xff, 0};
    shape.receiving_devices = 2;  // the second NIC can less
    shape.extensions_of_last = {0x15b3, 0x0f, 0};
    Loopback loop(settings, shape);
    auto ends = loop.connect();
    ASSERT_TRUE(ends) << ends.error().text();
    Carrier carrier(loop, 1000);
    ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 1000));
    ASSERT_TRUE(loop.wait_for_growth());
    ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 1000));
    for (const transfer::DataPath& path : ends->first->link().paths) {
      const std::uint32_t both = path.peer_device == 1 ? 0x0f : 0xff;
      EXPECT_EQ(loop.verbs->extensions_set(path.qp->qp_num), enabled ? both : 0);
    }
    for (const transfer::DataPath& path : ends->second->link().paths)
      EXPECT_EQ(loop.verbs->extensions_set(path.qp->qp_num), enabled ? (path.device == 1 ? 0x0f : 0xff) : 0);
  }
}

// Only the last of the work requests that one doorbell covers reports its completion.
TEST(DoorBells, CoverSeveralPieces) {
  settings::Settings settings;
  settings.paths = 1;
  Loopback loop(settings);
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  Carrier carrier(loop, 2 << 20);
  for (int i = 0; i < 4; i++)
    ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 2 << 20));
  const std::uint32_t qp = ends->first->link().paths[0].qp->qp_num;
  EXPECT_LT(loop.verbs->reported(qp), loop.verbs->posted_by_queue_pair().at(qp));
}

TEST(Registrations, AreSharedByRangeAndGivenBackWithTheLastUser) {
  Loopback loop;
  auto ends = loop.connect();
  ASSERT_TRUE(ends);
  const setup::OpenDevice& device = *ends->first->link().devices[0].opened;
  std::vector<std::uint8_t> memory(10'000);
  const int before = loop.verbs->objects();
  {
    const Registration first = loop.registration(memory.data(), 10'000),
                       same = loop.registration(memory.data(), 10'000);
    EXPECT_EQ(first.local_keys[0], same.local_keys[0]);
    EXPECT_EQ(device.registrations().size(), 1u);
    const Registration shorter = loop.registration(memory.data(), 5'000);
    EXPECT_NE(first.local_keys[0], shorter.local_keys[0]);
    EXPECT_EQ(device.registrations().size(), 2u);
    EXPECT_EQ(loop.verbs->objects(), before + 2);
  }
  EXPECT_EQ(device.registrations().size(), 0u);
  EXPECT_EQ(loop.verbs->objects(), before);
}

// Connections don't wait for each other: each may offer one message whatever the others hold.
TEST(Incast, IsLimitedPerNicButNeverToNothing) {
  settings::Settings settings;
  settings.incast_bytes = 100'000;
  Loopback loop(settings);
  auto first = loop.connect(), second = loop.connect();
  ASSERT_TRUE(first && second);
  std::vector<std::uint8_t> memory(100'000);
  const Registration to = loop.registration(memory.data(), memory.size(), true);
  const transfer::Receive offer{memory.data(), 60'000, 0, &to};
  Request *one = nullptr, *two = nullptr, *three = nullptr;
  EXPECT_EQ(first->second->receive(&offer, 1, &one), Progress::done);
  EXPECT_EQ(first->second->receive(&offer, 1, &two), Progress::not_yet) << "120 kB are too much";
  EXPECT_EQ(second->second->receive(&offer, 1, &three), Progress::done) << "the other connection's first";
  Request* sent = nullptr;
  const Registration from = loop.registration(memory.data(), memory.size());
  ASSERT_EQ(first->first->send(memory.data(), 60'000, 0, from, &sent), Progress::done);
  while (first->second->test(*one, nullptr) != Progress::done)
    ASSERT_FALSE(first->second->link().failed());
  const transfer::Receive small{memory.data(), 30'000, 0, &to};
  EXPECT_EQ(first->second->receive(&small, 1, &two), Progress::done);
}

}  // namespace
}  // namespace weft::setup
