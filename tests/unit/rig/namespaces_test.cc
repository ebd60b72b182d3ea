// The fabric in real namespaces: forwarding, the hash, two at once, and that nothing stays behind.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>

#include "tests/rig/fabric/command.h"
#include "tests/rig/fabric/fabric.h"
#include "tests/rig/fabric/isolation.h"

namespace weft::fabric {
namespace {

Topology two_leaves(std::uint32_t seed = 1) {
  Topology topology;
  topology.hash_seed = seed;
  return topology;
}

Result<std::unique_ptr<Fabric>> fabric_of(const Topology& topology) {
  return Fabric::create(topology, LinuxHash(topology.hash_seed));
}

// Sends datagrams of 1000 bytes from a host, as an RDMA NIC would: from a chosen source port, to port 4791,
// unconnected.
bool send_datagrams(const std::string& host, const Flow& flow, int count) {
  const pid_t child = fork();
  if (child == 0) {
    if (!enter_network(host)) _exit(1);
    const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in from{}, to{};
    from.sin_family = to.sin_family = AF_INET;
    from.sin_port = htons(flow.source_port);
    to.sin_port = htons(4791);
    inet_pton(AF_INET, flow.source.c_str(), &from.sin_addr);
    inet_pton(AF_INET, flow.destination.c_str(), &to.sin_addr);
    if (bind(socket, reinterpret_cast<sockaddr*>(&from), sizeof from) != 0) _exit(2);
    const std::string payload(1000, 'x');
    for (int i = 0; i < count; i++) {
      if (sendto(socket, payload.data(), payload.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to) < 0) _exit(3);
    }
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

Result<int> run_isolated(const std::function<int()>& work) {
  auto child = start_isolated(work);
  return child ? await_isolated(*child) : std::move(child);
}

// Runs `check` in an isolated process; it returns 0 where all is well.
void expect_isolated(const std::function<int()>& check) {
  auto code = run_isolated(check);
  ASSERT_TRUE(code) << code.error().text();
  EXPECT_EQ(*code, 0);
}

// The leaf must really hash with its seed: with a hash that the packet already carries, the prediction would be wrong.
int predictions_hold(std::uint32_t seed) {
  auto fabric = fabric_of(two_leaves(seed));
  if (!fabric) return std::fprintf(stderr, "%s\n", fabric.error().text().c_str()), 1;
  for (std::uint16_t port = 49152; port < 49168; port++) {
    const Flow flow{"10.1.1.2", "10.1.2.2", port};
    const auto predicted = (*fabric)->predict({flow});
    const auto before = (*fabric)->traffic();
    if (!predicted || !before || !send_datagrams("h1", flow, 50)) return 2;
    // The datagrams pass through queues on their way.
    std::string taken;
    for (int look = 0; look < 200 && taken.empty(); look++) {
      const auto after = (*fabric)->traffic();
      for (std::size_t i = 0; i < after->size(); i++) {
        if ((*after)[i].bytes - (*before)[i].bytes >= 50 * 1000) taken = (*after)[i].name;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (taken != predicted->at(0)) {
      return std::fprintf(stderr, "port %d: predicted %s, taken %s\n", port, predicted->at(0).c_str(), taken.c_str()),
             3;
    }
  }
  return 0;
}

TEST(FabricTest, PacketsTakeThePredictedSpine) {
  expect_isolated([] { return predictions_hold(1); });
  expect_isolated([] { return predictions_hold(77); });
}

TEST(FabricTest, TheSeedDecidesAndIsReproducible) {
  const auto map = [](std::uint32_t seed) {
    std::string spines;
    std::vector<Flow> flows;
    for (std::uint16_t port = 50000; port < 50032; port++)
      flows.push_back({"10.1.1.2", "10.1.2.2", port});
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    expect_isolated([&] {
      auto fabric = fabric_of(two_leaves(seed));
      if (!fabric) return 1;
      auto predicted = (*fabric)->predict(flows);
      if (!predicted) return 2;
      for (const std::string& spine : *predicted) {
        if (spine.size() != 2 || write(ends[1], spine.data(), 2) != 2) return 3;
      }
      return 0;
    });
    close(ends[1]);
    char text[64] = {};
    EXPECT_EQ(read(ends[0], text, sizeof text), 64);
    close(ends[0]);
    return std::string(text, sizeof text);
  };
  const std::string first = map(5);
  EXPECT_EQ(first, map(5));
  EXPECT_NE(first, map(6));
}

TEST(FabricTest, ASpineThatIsDownIsAvoidedAndComesBack) {
  expect_isolated([] {
    auto fabric = fabric_of(two_leaves());
    if (!fabric) return 1;
    std::vector<Flow> flows;
    for (std::uint16_t port = 50000; port < 50032; port++)
      flows.push_back({"10.1.1.2", "10.1.2.2", port});
    const auto uses = [&](const std::string& name) {
      const auto spines = (*fabric)->predict(flows);
      return spines && std::find(spines->begin(), spines->end(), name) != spines->end();
    };
    if (!uses("s2")) return 2;
    if (!(*fabric)->set_spine(1, false)) return 3;
    if (uses("s2")) return 4;
    if (!(*fabric)->set_spine(1, true)) return 5;
    return uses("s2") ? 0 : 6;
  });
}

// The last next hop takes its route with it.
TEST(FabricTest, AllSpinesGoAndComeBackOneByOne) {
  expect_isolated([] {
    auto fabric = fabric_of(two_leaves());
    if (!fabric) return 1;
    std::vector<Flow> flows;
    for (std::uint16_t port = 50000; port < 50032; port++)
      flows.push_back({"10.1.1.2", "10.1.2.2", port});
    const auto before = (*fabric)->predict(flows);
    for (int spine = 0; spine < 4; spine++) {
      if (!(*fabric)->set_spine(spine, false)) return 2;
    }
    for (int spine = 3; spine >= 0; spine--) {
      if (!(*fabric)->set_spine(spine, true)) return 3;
    }
    const auto after = (*fabric)->predict(flows);
    return before && after && *before == *after ? 0 : 4;
  });
}

// A spine that comes back may lose the first requests for a hardware address: the next one must not be a second away.
TEST(FabricTest, EveryPortRepeatsItsAddressRequestsSoon) {
  expect_isolated([] {
    auto fabric = fabric_of(two_leaves());
    if (!fabric) return 1;
    for (const char* network : {"h1", "h2", "l1", "l2", "s1", "s4"}) {
      const auto ports = must_run({"ip", "-n", network, "-o", "link", "show", "type", "veth"});
      const auto tables = must_run({"ip", "-n", network, "ntable", "show", "name", "arp_cache"});
      if (!ports || !tables) return 2;
      const auto count_of = [](const std::string& text, const std::string& what) {
        int count = 0;
        for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
          count++;
        return count;
      };
      const int repeating_soon = count_of(*tables, "retrans 20 ");
      if (repeating_soon == 0 || repeating_soon != count_of(*ports, "\n")) return 3;
    }
    return 0;
  });
}

TEST(FabricTest, TwoStandAtOnce) {
  int ready[2], go[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
  auto first = start_isolated([&] {
    close(go[1]);  // so that the end of the test ends this wait too
    auto fabric = fabric_of(two_leaves());
    if (!fabric || write(ready[1], "r", 1) != 1) return 1;
    char byte = 0;
    if (read(go[0], &byte, 1) != 1) return 2;
    const Flow flow{"10.1.1.2", "10.1.2.2", 50000};
    return send_datagrams("h1", flow, 1) ? 0 : 3;
  });
  ASSERT_TRUE(first) << first.error().text();
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  expect_isolated([] { return fabric_of(two_leaves()) ? 0 : 1; });
  ASSERT_EQ(write(go[1], "g", 1), 1);
  int status = -1;
  ASSERT_EQ(waitpid(*first, &status, 0), *first);
  EXPECT_EQ(status, 0);
}

// Whoever held the fabric is killed without a chance to clean up: all processes inside go, and with them namespaces and
// mounts.
TEST(IsolationTest, NothingOutlivesAKilledHolder) {
  int alive[2];
  ASSERT_EQ(pipe2(alive, O_CLOEXEC), 0);
  const pid_t holder = fork();
  ASSERT_GE(holder, 0);
  if (holder == 0) {
    auto code = run_isolated([&] {
      auto fabric = fabric_of(two_leaves());
      // A grandchild that ignores everything that can be ignored.
      const pid_t stubborn = fork();
      if (stubborn == 0) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        if (write(alive[1], "a", 1) != 1) _exit(1);
        while (true)
          pause();
      }
      waitpid(stubborn, nullptr, 0);
      return fabric ? 0 : 1;
    });
    _exit(code ? *code : 3);
  }
  close(alive[1]);
  char byte = 0;
  ASSERT_EQ(read(alive[0], &byte, 1), 1);
  ASSERT_EQ(kill(holder, SIGKILL), 0);
  waitpid(holder, nullptr, 0);
  // The pipe ends when the last process that holds its other end has gone.
  EXPECT_EQ(read(alive[0], &byte, 1), 0);
  close(alive[0]);
}

TEST(IsolationTest, TheCallersOwnNamespacesStayAsTheyAre) {
  char before[64] = {}, after[64] = {};
  ASSERT_GT(readlink("/proc/self/ns/net", before, sizeof before - 1), 0);
  expect_isolated([] { return make_network("h1") ? 0 : 1; });
  ASSERT_GT(readlink("/proc/self/ns/net", after, sizeof after - 1), 0);
  EXPECT_STREQ(before, after);
  EXPECT_NE(access("/run/netns/h1", F_OK), 0);
}

TEST(IsolationTest, TheResultComesBack) {
  auto code = run_isolated([] { return 42; });
  ASSERT_TRUE(code) << code.error().text();
  EXPECT_EQ(*code, 42);
}

}  // namespace
}  // namespace weft::fabric
