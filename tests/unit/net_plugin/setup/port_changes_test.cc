// A port that gets another address, loses it, or changes its speed while the job runs (field report F12).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "common/nccl_abi/net_types.h"
#include "tests/unit/net_plugin/fake/carrier.h"
#include "tests/unit/net_plugin/fake/loopback.h"

namespace weft::setup {
namespace {

using fake::Carrier;
using fake::ipv4_gid;
using fake::Loopback;
using fake::LoopbackShape;
using fake::PortDescription;
using testing::HasSubstr;
using testing::Not;

PortDescription port_with(const std::vector<Gid>& gids) {
  PortDescription out;
  out.gids = gids;
  return out;
}

const Gid kOld = ipv4_gid(10, 1, 1, 2), kNew = ipv4_gid(10, 1, 1, 77);

// The port is like this from now on, and the log says so.
void change(Loopback& loop, const PortDescription& port, const std::string& line, int number = 1,
            ibv_event_type event = IBV_EVENT_GID_CHANGE) {
  loop.verbs->set_port("mlx5_0", number, port);
  loop.verbs->raise("mlx5_0", event, number);
  for (int look = 0; look < 5000 && loop.log_text().find(line) == std::string::npos; look++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(loop.log_text(), HasSubstr(line));
}

Result<Gid> listening_gid(Loopback& loop, int device) {
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  auto listening = loop.runtime->listen(device, handle);
  if (!listening) return listening.take_error();
  return decode_handle(handle)->gid;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at++)
    found++;
  return found;
}

std::size_t count(const std::vector<ibv_gid>& all, const Gid& gid) {
  return std::size_t(std::count_if(
      all.begin(), all.end(), [&](const ibv_gid& one) { return std::memcmp(one.raw, gid.data(), gid.size()) == 0; }));
}

// Both ports have new addresses, and the event is about one of them.
TEST(PortChanges, F12_TheEventOfAPortIsThatPorts) {
  LoopbackShape shape;
  shape.ports = 2;
  Loopback loop({}, shape);
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  const auto first = loop.runtime->listen(0, handle), second = loop.runtime->listen(1, handle);
  ASSERT_TRUE(first && second);
  const Gid other = ipv4_gid(10, 2, 1, 77);
  loop.verbs->set_port("mlx5_0", 1, port_with({kNew}));
  change(loop, port_with({other}),
         "mlx5_0:2 GID table changed: index 0 10.2.1.2 -> 10.2.1.77; new connections will use it\n", 2);
  EXPECT_EQ(listening_gid(loop, 1).take(), other);
  EXPECT_EQ(listening_gid(loop, 0).take(), kOld) << "nobody has said anything about this one";
  EXPECT_THAT(loop.log_text(), Not(HasSubstr("mlx5_0:1 GID table")));
  EXPECT_EQ(count(loop.log_text(), "GID table changed"), 1u);
}

TEST(PortChanges, F12_NewConnectionsUseTheNewAddressAndOldOnesGoOn) {
  Loopback loop;
  auto old = loop.connect();
  ASSERT_TRUE(old) << old.error().text();
  Carrier carrier(loop, 1 << 20);
  ASSERT_TRUE(carrier.carry(*old->first, *old->second, 1 << 20));
  const std::size_t before = loop.verbs->destinations().size();
  EXPECT_EQ(count(loop.verbs->destinations(), kOld), before);
  // The new address comes to another index, as it does where the old one is taken away later.
  change(loop, port_with({Gid{}, kNew}), "index 0 10.1.1.2 -> index 1 10.1.1.77; new connections will use it");
  auto fresh = loop.connect();
  ASSERT_TRUE(fresh) << fresh.error().text();
  EXPECT_EQ(count(loop.verbs->destinations(), kOld), before);
  EXPECT_EQ(count(loop.verbs->destinations(), kNew), before);
  EXPECT_THAT(fresh->first->link().description, HasSubstr("mlx5_0:1 10.1.1.77 -> "));
  EXPECT_TRUE(carrier.carry(*old->first, *old->second, 1 << 20));
  EXPECT_TRUE(carrier.carry(*fresh->first, *fresh->second, 1 << 20));
}

TEST(PortChanges, F12_WithoutAUsableAddressNewConnectionsFailWithTheCause) {
  Loopback loop;
  ASSERT_TRUE(loop.connect());
  change(loop, port_with({Gid{}}), "mlx5_0:1 GID table changed: index 0 10.1.1.2 is gone; new connections will fail: ");
  const auto refused = listening_gid(loop, 0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("mlx5_0:1: has no usable RoCE v2 GID (1 slots: 0 used, 1 empty)"));
  change(loop, port_with({kNew}), "mlx5_0:1 GID table changed: none -> index 0 10.1.1.77; new connections will use it");
  EXPECT_TRUE(loop.connect());
}

// The peer of a side that has lost its address hears why, whichever side that is.
TEST(PortChanges, F12_ThePeerHearsOfTheLostAddress) {
  LoopbackShape shape;
  shape.receiving_devices = 2;
  Loopback loop({}, shape);
  char bytes[NCCL_NET_HANDLE_MAXSIZE];
  auto listening = loop.runtime->listen(0, bytes);
  ASSERT_TRUE(listening) << listening.error().text();
  change(loop, port_with({Gid{}}), "index 0 10.1.1.2 is gone");
  for (const int device : {0, 1}) {
    const std::size_t before = listening->listener->sessions().size();
    auto connecting = loop.runtime->connect(device, bytes, -1);
    EXPECT_EQ(bool(connecting), device == 1);
    std::optional<Result<Engine>> outcome;
    for (int look = 0; look < 5000 && !outcome; look++) {
      const auto sessions = listening->listener->sessions();
      if (sessions.size() > before) outcome = sessions.back()->poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(outcome && !*outcome);
    EXPECT_THAT(outcome->error().text(), HasSubstr("mlx5_0:1: has no usable RoCE v2 GID")) << device;
  }
}

TEST(PortChanges, F12_AListenerFromBeforeTakesConnectionsAtTheNewAddress) {
  Loopback loop;
  char bytes[NCCL_NET_HANDLE_MAXSIZE];
  auto listening = loop.runtime->listen(0, bytes);
  ASSERT_TRUE(listening) << listening.error().text();
  change(loop, port_with({kNew}), "10.1.1.2 -> 10.1.1.77");
  auto connecting = loop.runtime->connect(0, bytes, -1);
  ASSERT_TRUE(connecting) << connecting.error().text();
  std::optional<Result<Engine>> outcome;
  for (int look = 0; look < 5000 && !outcome; look++) {
    outcome = connecting->session->poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(outcome && *outcome);
  EXPECT_EQ(count(loop.verbs->destinations(), kOld), 0u);
}

TEST(PortChanges, F12_AChangeThatNobodySawIsFoundWhenTheDeviceIsOpened) {
  Loopback loop;
  ASSERT_EQ(listening_gid(loop, 0).take(), kOld);
  for (int look = 0; look < 5000 && loop.verbs->objects() != 0; look++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  loop.verbs->set_port("mlx5_0", 1, port_with({kNew}));
  EXPECT_EQ(listening_gid(loop, 0).take(), kNew);
  EXPECT_EQ(listening_gid(loop, 0).take(), kNew);
  EXPECT_EQ(count(loop.log_text(), "GID table changed"), 1u);
}

// More queue pairs would have the new address, and the peer knows the old one.
TEST(PortChanges, F12_AConnectionFromBeforeGetsNoMorePaths) {
  LoopbackShape shape;
  shape.all_paths_at_once = false;
  Loopback loop({}, shape);
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  change(loop, port_with({kNew}), "10.1.1.2 -> 10.1.1.77");
  Carrier carrier(loop, 4 << 20);
  ASSERT_TRUE(carrier.carry(*ends->first, *ends->second, 4 << 20));
  const std::string line = "goes on with 1 paths instead of more: the address of mlx5_0:1 was 10.1.1.2";
  for (int look = 0; look < 5000 && loop.log_text().find(line) == std::string::npos; look++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(loop.log_text(), HasSubstr(line));
  EXPECT_TRUE(carrier.carry(*ends->first, *ends->second, 4 << 20));
  EXPECT_EQ(ends->first->link().paths.size(), 1u);
}

// A link that is down may come back as it was; one that comes back slower is said.
TEST(PortChanges, R17_ASpeedThatChangesIsSaidAndALinkThatIsDownIsNotAChange) {
  Loopback loop;
  ASSERT_TRUE(loop.connect());
  PortDescription down = port_with({});
  down.state = IBV_PORT_DOWN;
  loop.verbs->set_port("mlx5_0", 1, down);
  loop.verbs->raise("mlx5_0", IBV_EVENT_GID_CHANGE);
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  EXPECT_THAT(loop.log_text(), Not(HasSubstr("changed")));
  PortDescription slower = port_with({kOld});
  slower.active_width = 1;
  change(loop, slower, "mlx5_0:1 speed changed: 100000 -> 25000 Mbit/s; new connections will use it", 1,
         IBV_EVENT_PORT_ACTIVE);
  EXPECT_TRUE(loop.connect());
}

}  // namespace
}  // namespace weft::setup
