// Whole connections in one process over a NIC that is none: handshake, every message right however its pieces arrive,
// failures and their causes, nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "net_plugin/exports/comm.h"
#include "net_plugin/setup/runtime.h"
#include "tests/unit/net_plugin/fake/loopback.h"

namespace weft::setup {
namespace {

using fake::Loopback;
using fake::LoopbackShape;
using testing::HasSubstr;
using transfer::Progress;
using transfer::Registration;
using transfer::Request;

constexpr std::size_t kHandle = 128;

struct Buffers {
  std::vector<std::uint8_t> from, to;
  explicit Buffers(std::size_t size) : from(size), to(size, 0xee) {
    for (std::size_t i = 0; i < size; i++)
      from[i] = std::uint8_t(i * 7 + i / 255);
  }
};

// Until both requests are done; the sizes that the receiver reports.
std::vector<int> finish(transfer::Sender& sender, transfer::Receiver& receiver, const std::vector<Request*>& sends,
                        Request& receive, std::size_t count) {
  std::vector<int> sizes(count, -1);
  std::vector<bool> sent(sends.size(), false);
  bool received = false;
  for (int look = 0; look < 100'000; look++) {
    bool all = received;
    if (!received) received = receiver.test(receive, sizes.data()) == Progress::done;
    for (std::size_t i = 0; i < sends.size(); i++) {
      int size = 0;
      if (!sent[i]) sent[i] = sender.test(*sends[i], &size) == Progress::done;
      all = all && sent[i];
    }
    if (all && received) return sizes;
  }
  ADD_FAILURE() << "not finished";
  return sizes;
}

TEST(Connection, CarriesEverySizeRight) {
  Loopback loop;
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  for (const std::size_t size : {0, 1, 127, 128, 129, 4095, 4096, 65536, 100'001, 1 << 20, (4 << 20) + 3}) {
    Buffers buffers(size + 64);
    const Registration from = loop.registration(buffers.from.data(), size + 64),
                       to = loop.registration(buffers.to.data(), size + 64);
    Request *receive = nullptr, *send = nullptr;
    // The receiver has more room than is sent, and the address is not aligned.
    const transfer::Receive offer{buffers.to.data() + 1, size + 5, 3, &to};
    ASSERT_EQ(receiver->receive(&offer, 1, &receive), Progress::done);
    ASSERT_EQ(sender->send(buffers.from.data() + 3, size, 3, from, &send), Progress::done);
    EXPECT_EQ(finish(*sender, *receiver, {send}, *receive, 1)[0], int(size));
    EXPECT_EQ(std::memcmp(buffers.to.data() + 1, buffers.from.data() + 3, size), 0) << size;
    EXPECT_EQ(buffers.to[0], 0xee);
    for (std::size_t i = size + 1; i < size + 64; i++)
      ASSERT_EQ(buffers.to[i], 0xee) << "written past the end";
  }
  EXPECT_EQ(loop.verbs->receiver_not_ready(), 0);
}

TEST(Connection, SpreadsALargeMessageOverAllPaths) {
  settings::Settings settings;
  settings.paths = 8;
  Loopback loop(settings);
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  const auto before = loop.verbs->posted_by_queue_pair();
  Buffers buffers(8 << 20);
  const Registration from = loop.registration(buffers.from.data(), 8 << 20),
                     to = loop.registration(buffers.to.data(), 8 << 20);
  Request *receive = nullptr, *send = nullptr;
  const transfer::Receive offer{buffers.to.data(), 8 << 20, 0, &to};
  ASSERT_EQ(receiver->receive(&offer, 1, &receive), Progress::done);
  ASSERT_EQ(sender->send(buffers.from.data(), 8 << 20, 0, from, &send), Progress::done);
  finish(*sender, *receiver, {send}, *receive, 1);
  std::set<std::uint16_t> ports;
  std::size_t used = 0;
  const auto after = loop.verbs->posted_by_queue_pair();
  for (const transfer::DataPath& path : sender->link().paths) {
    ports.insert(path.port);
    used += after.at(path.qp->qp_num) > before.at(path.qp->qp_num);
  }
  EXPECT_EQ(ports.size(), 8u);
  EXPECT_EQ(used, 8u);
}

TEST(Connection, GivesTheSameSourcePortsInEveryRun) {
  const auto ports = [](std::uint64_t seed) {
    settings::Settings settings;
    settings.seed = seed;
    Loopback loop(settings);
    auto ends = loop.connect();
    std::vector<std::uint16_t> out;
    if (!ends) return out;
    for (const transfer::DataPath& path : ends->first->link().paths)
      out.push_back(path.port);
    return out;
  };
  const auto first = ports(1);
  EXPECT_EQ(first.size(), 24u);
  EXPECT_EQ(first, ports(1));
  EXPECT_NE(first, ports(2));
}

// One communicator waits on the GPU for seconds and polls nothing, with all that it can have under way: what another
// one does is not the worse for it, with shared receive queues and without, with the incast limit used up and without
// one.
TEST(Connection, ACommunicatorThatNobodyPollsLeavesAnotherAlone) {
  struct Case {
    int max_srq;
    std::int64_t incast_bytes;
  };
  for (const Case& one : {Case{1024, 0}, Case{0, 0}, Case{1024, 200'000}}) {
    settings::Settings settings;
    settings.incast_bytes = one.incast_bytes;
    LoopbackShape shape;
    shape.max_srq = one.max_srq;
    Loopback loop(settings, shape);
    auto silent = loop.connect();
    ASSERT_TRUE(silent) << silent.error().text();
    auto busy = loop.connect();
    ASSERT_TRUE(busy) << busy.error().text();
    constexpr std::size_t kSize = 100'000;
    Buffers unused(kSize), buffers(kSize);
    const Registration unused_from = loop.registration(unused.from.data(), kSize),
                       unused_to = loop.registration(unused.to.data(), kSize),
                       from = loop.registration(buffers.from.data(), kSize),
                       to = loop.registration(buffers.to.data(), kSize);
    int offered = 0;
    for (int i = 0; i < 32; i++) {
      Request *receive = nullptr, *send = nullptr;
      const transfer::Receive offer{unused.to.data(), kSize, 0, &unused_to};
      if (silent->second->receive(&offer, 1, &receive) != Progress::done) break;
      ASSERT_EQ(silent->first->send(unused.from.data(), kSize, 0, unused_from, &send), Progress::done);
      offered++;
    }
    EXPECT_GE(offered, one.incast_bytes == 0 ? 16 : 1);
    for (int i = 0; i < 200; i++) {
      std::fill(buffers.to.begin(), buffers.to.end(), std::uint8_t(0xee));
      Request *receive = nullptr, *send = nullptr;
      const transfer::Receive offer{buffers.to.data(), kSize, i, &to};
      ASSERT_EQ(busy->second->receive(&offer, 1, &receive), Progress::done);
      ASSERT_EQ(busy->first->send(buffers.from.data(), kSize, i, from, &send), Progress::done);
      ASSERT_EQ(finish(*busy->first, *busy->second, {send}, *receive, 1)[0], int(kSize));
      ASSERT_EQ(buffers.to, buffers.from);
    }
    EXPECT_EQ(loop.verbs->receiver_not_ready(), 0);
  }
}

// Receives of a group are met by tag, in whatever order the sends come.
TEST(Connection, MatchesAGroupByTag) {
  Loopback loop;
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  constexpr std::size_t kSize = 5000;
  Buffers buffers(8 * kSize);
  const Registration from = loop.registration(buffers.from.data(), 8 * kSize),
                     to = loop.registration(buffers.to.data(), 8 * kSize);
  std::vector<transfer::Receive> offers;
  for (int i = 0; i < 8; i++)
    offers.push_back({buffers.to.data() + std::size_t(i) * kSize, kSize, 100 + i, &to});
  Request* receive = nullptr;
  ASSERT_EQ(receiver->receive(offers.data(), 8, &receive), Progress::done);
  std::vector<Request*> sends;
  for (const int i : {5, 0, 7, 2, 1, 6, 3, 4}) {
    Request* send = nullptr;
    ASSERT_EQ(sender->send(buffers.from.data() + std::size_t(i) * kSize, kSize - std::size_t(i), 100 + i, from, &send),
              Progress::done);
    sends.push_back(send);
  }
  const std::vector<int> sizes = finish(*sender, *receiver, sends, *receive, 8);
  for (std::size_t i = 0; i < 8; i++) {
    EXPECT_EQ(sizes[i], int(kSize - i));
    EXPECT_EQ(std::memcmp(buffers.to.data() + i * kSize, buffers.from.data() + i * kSize, kSize - i), 0) << i;
  }
}

// A property: whatever order the paths deliver in, every byte is right and the receiver is never caught without a
// receive. The order within a queue pair stays, as the NIC promises.
class AnyOrder : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(AnyOrder, EveryByteIsRight) {
  const auto [seed, max_srq] = GetParam();
  std::mt19937 random{unsigned(seed)};
  fake::LoopbackShape shape;
  shape.max_srq = max_srq;
  Loopback loop({}, shape);
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  loop.verbs->hold();
  constexpr int kMessages = 60, kInFlight = 16;
  constexpr std::size_t kMost = 300'000;
  struct Transfer {
    Buffers buffers{kMost};
    Registration from, to;
    std::size_t size = 0;
    Request *send = nullptr, *receive = nullptr;
    bool offered = false, started = false, sent = false, received = false;
  };
  std::vector<std::unique_ptr<Transfer>> all;
  for (int i = 0; i < kMessages; i++) {
    all.push_back(std::make_unique<Transfer>());
    all.back()->size = random() % kMost;
    all.back()->from = loop.registration(all.back()->buffers.from.data(), kMost);
    all.back()->to = loop.registration(all.back()->buffers.to.data(), kMost);
  }
  const auto deliver_one = [&] {
    if (loop.verbs->held() == 0) return;
    const std::uint32_t qp = loop.verbs->which(random() % loop.verbs->held());
    for (std::size_t place = 0; place < loop.verbs->held(); place++) {
      if (loop.verbs->which(place) != qp) continue;
      loop.verbs->deliver(place);
      return;
    }
  };
  int finished = 0;
  for (int step = 0; step < 2'000'000 && finished < kMessages; step++) {
    int in_flight = 0;
    for (auto& one : all) {
      in_flight += one->offered && !one->received;
      if (!one->offered && in_flight < kInFlight) {
        const transfer::Receive offer{one->buffers.to.data(), kMost, 0, &one->to};
        const Progress progress = receiver->receive(&offer, 1, &one->receive);
        ASSERT_NE(progress, Progress::failed) << receiver->link().failure()->error.text();
        one->offered = progress == Progress::done;
        break;
      }
      if (one->offered && !one->started) {
        const Progress progress = sender->send(one->buffers.from.data(), one->size, 0, one->from, &one->send);
        ASSERT_NE(progress, Progress::failed) << sender->link().failure()->error.text();
        one->started = progress == Progress::done;
        break;
      }
    }
    for (unsigned i = 0; i < 1 + random() % 8; i++)
      deliver_one();
    for (auto& one : all) {
      int size = -1;
      if (one->started && !one->sent) one->sent = sender->test(*one->send, &size) == Progress::done;
      if (one->offered && !one->received && receiver->test(*one->receive, &size) == Progress::done) {
        one->received = true;
        finished++;
        EXPECT_EQ(size, int(one->size));
        EXPECT_EQ(std::memcmp(one->buffers.to.data(), one->buffers.from.data(), one->size), 0);
      }
    }
  }
  EXPECT_EQ(finished, kMessages);
  EXPECT_EQ(loop.verbs->receiver_not_ready(), 0);
  loop.verbs->release();
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyOrder, testing::Combine(testing::Range(1, 6), testing::Values(1024, 0)));

// One bad completion is one error that names peer, path, status and vendor code, on both ends, for every later call.
TEST(Connection, ABadCompletionEndsItWithItsCause) {
  Loopback loop;
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  Buffers buffers(1000);
  const Registration from = loop.registration(buffers.from.data(), 1000),
                     to = loop.registration(buffers.to.data(), 1000);
  Request *receive = nullptr, *send = nullptr;
  const transfer::Receive offer{buffers.to.data(), 1000, 0, &to};
  ASSERT_EQ(receiver->receive(&offer, 1, &receive), Progress::done);
  loop.verbs->fail_next(IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(sender->send(buffers.from.data(), 1000, 0, from, &send), Progress::done);
  int size = 0;
  ASSERT_EQ(sender->test(*send, &size), Progress::failed);
  const std::string text = sender->link().failure()->error.text();
  EXPECT_THAT(text, HasSubstr("transport retry counter exceeded"));
  EXPECT_THAT(text, HasSubstr("vendor error 0x81"));
  EXPECT_THAT(text, HasSubstr("source port"));
  EXPECT_THAT(text, HasSubstr("mlx5_0:1"));
  EXPECT_TRUE(sender->link().failure()->remote);
  EXPECT_EQ(sender->send(buffers.from.data(), 1, 0, from, &send), Progress::failed);
  // The other end hears it from the control connection.
  loop.control->call(loop.sender_session, [&] { loop.sender_session->say_failed(text); });
  for (int look = 0; look < 2000 && receiver->test(*receive, &size) != Progress::failed; look++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(receiver->link().failed());
  EXPECT_THAT(receiver->link().failure()->error.text(), HasSubstr("transport retry counter exceeded"));
}

TEST(Connection, AFatalEventEndsIt) {
  Loopback loop;
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  loop.verbs->raise("mlx5_0", IBV_EVENT_DEVICE_FATAL);
  Buffers buffers(16);
  const Registration to = loop.registration(buffers.to.data(), 16);
  const transfer::Receive offer{buffers.to.data(), 16, 0, &to};
  Request* receive = nullptr;
  Progress progress = Progress::done;
  for (int look = 0; look < 2000 && progress != Progress::failed; look++) {
    progress = receiver->receive(&offer, 1, &receive);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(progress, Progress::failed);
  EXPECT_THAT(receiver->link().failure()->error.text(), HasSubstr("fatal event"));
}

TEST(Connection, TooLargeMessagesAreErrorsWithBothSizes) {
  Loopback loop;
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  Buffers buffers(100);
  const Registration memory = loop.registration(buffers.from.data(), 100);
  Request *receive = nullptr, *send = nullptr;
  const transfer::Receive offer{buffers.to.data(), 50, 0, &memory};
  ASSERT_EQ(receiver->receive(&offer, 1, &receive), Progress::done);
  EXPECT_EQ(sender->send(buffers.from.data(), 51, 0, memory, &send), Progress::failed);
  EXPECT_THAT(sender->link().failure()->error.text(), HasSubstr("a message of 51 bytes meets a receive of 50"));
}

// NCCL's limit is 1 GiB; what is larger is refused before a byte moves.
TEST(Connection, MessagesAboveOneGibibyteAreRefused) {
  for (const std::size_t size :
       {(std::size_t(1) << 30) + 1, (std::size_t(1) << 31) - 1, std::size_t(1) << 31, (std::size_t(1) << 31) + 1}) {
    Loopback loop;
    auto ends = loop.connect();
    ASSERT_TRUE(ends) << ends.error().text();
    char byte = 0;
    const Registration memory = loop.registration(&byte, 1);
    Request* request = nullptr;
    EXPECT_EQ(ends->first->send(&byte, size, 0, memory, &request), Progress::failed);
    EXPECT_THAT(ends->first->link().failure()->error.text(), HasSubstr("1 GiB"));
    const transfer::Receive offer{&byte, size, 0, &memory};
    EXPECT_EQ(ends->second->receive(&offer, 1, &request), Progress::failed);
  }
}

TEST(Connection, LeavesNoVerbsObjectAndNoThreadBehind) {
  const auto threads = [] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
      count += entry.is_directory();
    return count;
  };
  Loopback loop;
  ASSERT_TRUE(loop.connect());
  ASSERT_TRUE(loop.connect());
  loop.engines.clear();
  loop.sender_session.reset();
  loop.receiver_session.reset();
  loop.control.reset();
  // A thread that has been joined stays in /proc until the kernel has let go of it.
  for (int look = 0; look < 1000 && threads() != 1; look++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(threads(), 1u);
  EXPECT_EQ(loop.verbs->objects(), 0);
}

TEST(Connection, ForAnotherListenerIsRefused) {
  Loopback loop;
  char handle[kHandle];
  auto listening = loop.runtime->listen(0, handle);
  ASSERT_TRUE(listening) << listening.error().text();
  handle[32]++;  // the listener's number
  auto connecting = loop.runtime->connect(0, handle, -1);
  ASSERT_TRUE(connecting);
  std::optional<Result<Engine>> outcome;
  for (int look = 0; look < 5000 && !outcome; look++) {
    outcome = connecting->session->poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(outcome && !*outcome);
  EXPECT_THAT(outcome->error().text(), HasSubstr("for another listener"));
  const auto sessions = listening->listener->sessions();
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_FALSE(sessions[0]->was_for_this_listener());
}

TEST(Connection, AStrangersBytesAreNoPeer) {
  Loopback loop;
  char handle[kHandle];
  auto listening = loop.runtime->listen(0, handle);
  ASSERT_TRUE(listening) << listening.error().text();
  const Handle peer = decode_handle(handle).take();
  const int socket = ::socket(peer.address.ss_family, SOCK_STREAM, 0);
  ASSERT_EQ(connect(socket, reinterpret_cast<const sockaddr*>(&peer.address), sizeof peer.address), 0)
      << std::strerror(errno);
  ASSERT_EQ(write(socket, "GET / HTTP/1.1\r\n", 16), 16);
  std::optional<Result<Engine>> outcome;
  std::shared_ptr<Session> session;
  for (int look = 0; look < 5000 && !outcome; look++) {
    if (!listening->listener->sessions().empty()) session = listening->listener->sessions()[0];
    if (session) outcome = session->poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  close(socket);
  ASSERT_TRUE(outcome && !*outcome);
  EXPECT_FALSE(session->was_for_this_listener());
}

// Half-open connections, slow writers and oversized frames: bounded, and a connection that is up does not notice.
TEST(Connection, AFloodAtTheListenerIsBounded) {
  Loopback loop;
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  char handle[kHandle];
  auto listening = loop.runtime->listen(0, handle);
  ASSERT_TRUE(listening) << listening.error().text();
  const Handle peer = decode_handle(handle).take();
  std::vector<int> sockets;
  for (int i = 0; i < 300; i++) {
    sockets.push_back(::socket(peer.address.ss_family, SOCK_STREAM, 0));
    ASSERT_EQ(connect(sockets.back(), reinterpret_cast<const sockaddr*>(&peer.address), sizeof peer.address), 0);
    const char oversized[12] = {'W', 'E', 'F', 'T', 1, 0, 1, 0, 0x7f, 0x7f, 0x7f, 0x7f};
    (void)!send(sockets.back(), oversized, i % 13, MSG_NOSIGNAL);
  }
  for (int look = 0; look < 200 && listening->listener->sessions().size() < Listener::kMostSessions; look++)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LE(listening->listener->sessions().size(), Listener::kMostSessions);
  std::uint8_t from = 7, to = 0;
  const Registration from_memory = loop.registration(&from, 1), to_memory = loop.registration(&to, 1, true);
  Request *receive = nullptr, *sent = nullptr;
  const transfer::Receive offer{&to, 1, 0, &to_memory};
  ASSERT_EQ(ends->second->receive(&offer, 1, &receive), Progress::done);
  ASSERT_EQ(ends->first->send(&from, 1, 0, from_memory, &sent), Progress::done);
  finish(*ends->first, *ends->second, {sent}, *receive, 1);
  EXPECT_EQ(to, 7);
  for (const int socket : sockets)
    close(socket);
}

TEST(Connection, HostsWithOtherSettingsAreNamed) {
  settings::Settings other;
  other.ib_tc = 106;
  EXPECT_NE(settings::job_wide_digest(other), settings::job_wide_digest({}));
  other = {};
  other.ib_hca = "mlx5_1";  // each host's own business
  EXPECT_EQ(settings::job_wide_digest(other), settings::job_wide_digest({}));
}

}  // namespace
}  // namespace weft::setup
