// A peer on another rail that can't be reached: whichever step finds out, both rails are in the message (field reports
// F26, F27, F35).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/net_plugin/fake/fake_connection_manager.h"
#include "tests/unit/net_plugin/fake/loopback.h"

namespace weft::setup {
namespace {

using fake::Attempt;
using fake::FakeConnectionManager;
using fake::Loopback;
using fake::LoopbackShape;
using fake::silent_neighbour;
using testing::AllOf;
using testing::HasSubstr;

devices::Interface interface(const std::string& name, std::uint32_t address, int prefix_length) {
  devices::Interface out;
  out.name = name;
  out.prefix_length = prefix_length;
  out.loopback = name == "lo";
  auto& ipv4 = reinterpret_cast<sockaddr_in&>(out.address);
  ipv4.sin_family = AF_INET;
  ipv4.sin_addr.s_addr = htonl(address);
  return out;
}

// One NIC sends to two, which have addresses in other subnets, and handshakes go over loopback.
LoopbackShape two_rails() {
  LoopbackShape shape;
  shape.receiving_devices = 2;
  shape.interfaces = [] {
    return std::vector<devices::Interface>{interface("ens1", 0x0a010102, 24), interface("ens2", 0x0a010202, 24),
                                           interface("lo", INADDR_LOOPBACK, 8)};
  };
  return shape;
}

settings::Settings over_loopback() {
  settings::Settings settings;
  settings.socket_ifname = "lo";
  return settings;
}

constexpr const char* kAtReceiver = "mlx5_1:1 10.1.2.2/24 and mlx5_0:1 10.1.1.2/24 are in different subnets";

// What both sides say.
std::string errors_of(Loopback& loop) {
  EXPECT_FALSE(loop.connect());
  EXPECT_EQ(loop.errors.size(), 2u);
  std::string all;
  for (const Error& error : loop.errors)
    all += error.text() + "\n";
  return all;
}

TEST(Rails, F26_AnAddressThatIsNotResolvedNamesBothRails) {
  LoopbackShape shape = two_rails();
  shape.connect_timeout_ms = 1000;
  Loopback loop(over_loopback(), shape,
                std::make_unique<FakeConnectionManager>(std::deque<Attempt>{silent_neighbour()}));
  const std::string all = errors_of(loop);
  EXPECT_THAT(all, AllOf(HasSubstr("ETIMEDOUT"), HasSubstr(kAtReceiver), HasSubstr("NCCL_CROSS_NIC=0")));
}

TEST(Rails, F26_AQueuePairThatTimesOutOnItsWayNamesBothRails) {
  LoopbackShape shape = two_rails();
  Loopback loop(over_loopback(), shape);
  loop.verbs->ready_to_receive_error = ETIMEDOUT;
  const std::string all = errors_of(loop);
  EXPECT_THAT(all, AllOf(HasSubstr("INIT -> RTR"), HasSubstr("GID index 0"), HasSubstr("10.1.1.2/24 and ")));
}

// No route: nobody waits for anything, and the pair that is meant is named, not the first of the connection.
TEST(Rails, F27_RailsWithoutARouteAreAnErrorAtOnce) {
  Loopback loop(over_loopback(), two_rails(),
                std::make_unique<FakeConnectionManager>(std::deque<Attempt>{{ENETUNREACH, {}}}));
  const auto begin = std::chrono::steady_clock::now();
  const std::string all = errors_of(loop);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_THAT(all, AllOf(HasSubstr("there is no route to the peer"), HasSubstr(kAtReceiver)));
}

TEST(Rails, F35_AFirstWriteThatIsLostNamesBothRails) {
  LoopbackShape shape = two_rails();
  Loopback loop(over_loopback(), shape);
  loop.verbs->fail_next(IBV_WC_RETRY_EXC_ERR);
  const std::string all = errors_of(loop);
  EXPECT_THAT(all, AllOf(HasSubstr("the first write did not arrive"), HasSubstr("10.1.1.2/24 and ")));
}

// Neither an error nor an answer: the deadline ends it.
TEST(Rails, F35_SilenceNamesBothRails) {
  LoopbackShape shape = two_rails();
  shape.connect_timeout_ms = 500;
  Loopback loop(over_loopback(), shape);
  loop.verbs->hold();
  const std::string all = errors_of(loop);
  EXPECT_THAT(all, AllOf(HasSubstr("within 500 ms (first writes)"), HasSubstr("WEFT_CONNECT_TIMEOUT_MS"),
                         HasSubstr("mlx5_0:1 10.1.1.2/24 and "), HasSubstr(" mlx5_0:1 10.1.1.2 (process ")));
  loop.verbs->release();
}

}  // namespace
}  // namespace weft::setup
