// The way to a peer's address, with a scripted connection manager.
#include "net_plugin/setup/address_resolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/net_plugin/fake/fake_connection_manager.h"
#include "tests/unit/net_plugin/fake/loopback.h"

namespace weft::setup {
namespace {

using fake::Attempt;
using fake::FakeConnectionManager;
using fake::reached;
using fake::silent_neighbour;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

Gid ipv4(std::uint8_t host) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, host, 2};
}

// Steps through time, 10 ms at a time, until it is over.
struct Outcome {
  std::optional<Result<void>> result;
  milliseconds took{0};
  std::string remark;
};

Outcome resolve(FakeConnectionManager& manager, milliseconds patience = seconds(10), Gid to = ipv4(2)) {
  TimePoint now{};
  Outcome outcome;
  auto resolution = AddressResolution::start(manager, {"mlx5_0", ipv4(1), to, now + patience}, now);
  if (!resolution) return outcome;
  while (!outcome.result && outcome.took < seconds(60)) {
    outcome.result = resolution->step(now + outcome.took);
    outcome.took += milliseconds(10);
  }
  outcome.remark = resolution->remark();
  return outcome;
}

TEST(AddressResolution, APeerThatIsReachedIsFoundFromTheNicsOwnAddress) {
  FakeConnectionManager manager({reached()});
  const Outcome outcome = resolve(manager);
  ASSERT_TRUE(outcome.result);
  EXPECT_TRUE(outcome.result->ok());
  EXPECT_EQ(manager.last_source, "10.1.1.2");
  EXPECT_EQ(manager.last_destination, "10.1.2.2");
  EXPECT_EQ(outcome.remark, "");
  EXPECT_EQ(manager.open_objects(), 0);
}

TEST(AddressResolution, Ipv6AddressesToo) {
  FakeConnectionManager manager({reached()});
  const Gid to = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
  ASSERT_TRUE(resolve(manager, seconds(10), to).result);
  EXPECT_EQ(manager.last_destination, "2001:db8::7");
}

// Each cause has its own line, whether the call says it or an event.
TEST(AddressResolution, EachCauseIsNamed) {
  struct Case {
    Attempt attempt;
    const char* code;
    const char* hint;
  };
  const Case cases[] = {
      {{ENETUNREACH, {}}, "ENETUNREACH", "there is no route to the peer"},
      {{0, {{RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH}}}, "ENETUNREACH", "there is no route to the peer"},
      {{EADDRNOTAVAIL, {}}, "EADDRNOTAVAIL", "not on the NIC's interface any more"},
      {{ENODEV, {}}, "ENODEV", "another network namespace"},
      {{ENETDOWN, {}}, "ENETDOWN", "interface is down"},
      {{0, {{RDMA_CM_EVENT_ADDR_RESOLVED}, {RDMA_CM_EVENT_DEVICE_REMOVAL}}}, "ENODEV", "another network namespace"},
      {{0, {{RDMA_CM_EVENT_ADDR_RESOLVED}, {RDMA_CM_EVENT_ROUTE_ERROR, -ENETUNREACH}}}, "ENETUNREACH", "no route"},
  };
  for (const Case& one : cases) {
    FakeConnectionManager manager({one.attempt});
    const Outcome outcome = resolve(manager);
    ASSERT_TRUE(outcome.result) << one.hint;
    ASSERT_FALSE(outcome.result->ok()) << one.hint;
    EXPECT_THAT(outcome.result->error().text(), AllOf(HasSubstr(one.code), HasSubstr(one.hint), HasSubstr("mlx5_0"),
                                                      HasSubstr("10.1.2.2"), HasSubstr("10.1.1.2")));
    EXPECT_LE(outcome.took, seconds(1)) << "waiting does not help";
    EXPECT_EQ(manager.open_objects(), 0);
  }
}

TEST(AddressResolution, ANeighbourThatAnswersLateIsAskedAgain) {
  for (const int refused : {0, EHOSTUNREACH}) {
    const Attempt late = refused != 0 ? Attempt{refused, {}} : silent_neighbour();
    FakeConnectionManager manager({late, late, reached()});
    const Outcome outcome = resolve(manager);
    ASSERT_TRUE(outcome.result);
    EXPECT_TRUE(outcome.result->ok());
    EXPECT_EQ(manager.attempts_made(), 3);
    EXPECT_EQ(manager.open_objects(), 0);
  }
}

TEST(AddressResolution, ANeighbourThatNeverAnswersEndsAtTheDeadline) {
  FakeConnectionManager manager({silent_neighbour()});
  const Outcome outcome = resolve(manager, seconds(5));
  ASSERT_TRUE(outcome.result);
  ASSERT_FALSE(outcome.result->ok());
  EXPECT_THAT(outcome.result->error().text(),
              AllOf(HasSubstr("ETIMEDOUT"), HasSubstr("could not be resolved in time")));
  EXPECT_LE(outcome.took, seconds(6));
  EXPECT_LE(manager.attempts_made(), 5000 / 250 + 1) << "not in a busy loop";
}

// A kernel that never reports anything must not hang a connection either.
TEST(AddressResolution, SilenceOfTheKernelEndsToo) {
  FakeConnectionManager manager({Attempt{}});
  const Outcome outcome = resolve(manager, seconds(5));
  ASSERT_TRUE(outcome.result);
  EXPECT_FALSE(outcome.result->ok());
  EXPECT_LE(outcome.took, seconds(10));
}

TEST(AddressResolution, AnotherNicThatServesTheAddressIsARemark) {
  FakeConnectionManager manager({reached()});
  manager.served_by = "mlx5_7";
  const Outcome outcome = resolve(manager);
  ASSERT_TRUE(outcome.result);
  EXPECT_TRUE(outcome.result->ok());
  EXPECT_THAT(outcome.remark, HasSubstr("through mlx5_7"));
}

// What concerns the connection manager alone is left to the queue pair's own resolution.
TEST(AddressResolution, WithoutADeviceNodeOrPermissionThereIsNone) {
  FakeConnectionManager none({reached()});
  none.has_device_node = false;
  EXPECT_FALSE(resolve(none).result);
  for (const int code : {EPERM, EACCES, ENOSYS, EINVAL, ENOMEM}) {
    FakeConnectionManager manager({Attempt{code, {}}});
    EXPECT_FALSE(resolve(manager).result) << code;
    EXPECT_EQ(manager.open_objects(), 0);
  }
}

// Whole connections between two NICs.
fake::LoopbackShape two_nics() {
  fake::LoopbackShape shape;
  shape.receiving_devices = 2;
  return shape;
}

TEST(AddressResolution, AConnectionWaitsForItAndRemembersIt) {
  auto made = std::make_unique<FakeConnectionManager>(std::deque<Attempt>{silent_neighbour(), reached()});
  FakeConnectionManager& manager = *made;
  fake::Loopback loop({}, two_nics(), std::move(made));
  ASSERT_TRUE(loop.connect());
  const int first = manager.attempts_made();
  EXPECT_GE(first, 2);
  ASSERT_TRUE(loop.connect());
  EXPECT_EQ(manager.attempts_made(), first) << "the way is known";
  EXPECT_EQ(manager.open_objects(), 0);
}

TEST(AddressResolution, WithoutAWayBothSidesHearTheCause) {
  fake::Loopback loop({}, two_nics(), std::make_unique<FakeConnectionManager>(std::deque<Attempt>{{ENETUNREACH, {}}}));
  ASSERT_FALSE(loop.connect());
  ASSERT_EQ(loop.errors.size(), 2u);
  for (const Error& error : loop.errors)
    EXPECT_THAT(error.text(), AllOf(HasSubstr("there is no route to the peer"), HasSubstr("ip route get")));
}

}  // namespace
}  // namespace weft::setup
