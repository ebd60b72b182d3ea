// The TCP sockets of the handshake among firewalls, signals and slow peers. F-numbers: docs/field-reports.md.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "common/nccl_abi/net_types.h"
#include "net_plugin/setup/socket_address.h"
#include "tests/unit/net_plugin/fake/loopback.h"

namespace weft::setup {
namespace {

using fake::Loopback;
using fake::LoopbackShape;
using settings::PortRange;
using testing::AllOf;
using testing::HasSubstr;

sockaddr_storage any_address(std::uint32_t address = INADDR_LOOPBACK, std::uint16_t port = 0) {
  sockaddr_storage out{};
  auto& ipv4 = reinterpret_cast<sockaddr_in&>(out);
  ipv4.sin_family = AF_INET;
  ipv4.sin_addr.s_addr = htonl(address);
  ipv4.sin_port = htons(port);
  return out;
}

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// Listeners on every address of the host, on `count` ports that follow each other.
std::vector<FileDescriptor> occupy(std::size_t count, PortRange& range) {
  for (int attempt = 0; attempt < 200; attempt++) {
    sockaddr_storage first = any_address(INADDR_ANY);
    auto socket = listen_socket(&first);
    if (!socket) continue;
    std::vector<FileDescriptor> all;
    all.push_back(socket.take());
    range = {port_of(first), std::uint16_t(port_of(first) + count - 1)};
    for (std::size_t i = 1; i < count && range.first < range.last; i++) {
      sockaddr_storage next = any_address(INADDR_ANY, std::uint16_t(range.first + i));
      auto more = listen_socket(&next);
      if (!more) break;
      all.push_back(more.take());
    }
    if (all.size() == count) return all;
  }
  return {};
}

// Every port of the range is found wherever the search begins, and with none left that is an error and no more.
TEST(HandshakeSockets, F79_AListenerTakesAFreePortOfTheRange) {
  PortRange range;
  std::vector<FileDescriptor> taken = occupy(8, range);
  ASSERT_EQ(taken.size(), 8u);
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    sockaddr_storage address = any_address();
    const auto none = listen_socket(&address, range, seed);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().text(),
                HasSubstr("no free TCP port in WEFT_PORT_RANGE " + settings::port_range_text(range) + " on 127.0.0.1"));
  }
  taken[5].reset();
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    sockaddr_storage address = any_address();
    const auto found = listen_socket(&address, range, seed);
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(port_of(address), range.first + 5);
  }
  taken.clear();
  std::set<std::uint16_t> begun;
  for (std::uint64_t seed = 1000; seed < 1064; seed++) {
    sockaddr_storage address = any_address();
    ASSERT_TRUE(listen_socket(&address, range, seed));
    begun.insert(port_of(address));
  }
  EXPECT_EQ(begun.size(), 8u) << "processes begin at different places";
}

// A connection keeps its listener's port for as long as it lives, which is as long as the job.
TEST(HandshakeSockets, F79_LiveConnectionsUseUpNoRange) {
  PortRange range;
  occupy(1, range).clear();
  settings::Settings settings;
  settings.port_range = range;
  settings.socket_family = "AF_INET";
  Loopback loop(settings);
  for (int i = 0; i < 3; i++) {
    auto ends = loop.connect();
    ASSERT_TRUE(ends) << ends.error().text();
  }
}

TEST(HandshakeSockets, F79_AFullRangeIsAnErrorOfListen) {
  PortRange range;
  const std::vector<FileDescriptor> taken = occupy(2, range);
  ASSERT_EQ(taken.size(), 2u);
  settings::Settings settings;
  settings.port_range = range;
  settings.socket_family = "AF_INET";
  Loopback loop(settings);
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  const auto listening = loop.runtime->listen(0, handle);
  ASSERT_FALSE(listening);
  EXPECT_THAT(listening.error().text(), HasSubstr("no free TCP port in WEFT_PORT_RANGE"));
}

TEST(HandshakeSockets, F80_TheChosenInterfaceIsInTheLogOnce) {
  Loopback loop;
  ASSERT_TRUE(loop.connect());
  ASSERT_TRUE(loop.connect());
  const std::string log = loop.log_text();
  const std::size_t first = log.find("handshakes go over ");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log.find("handshakes go over ", first + 1), std::string::npos);
}

// What connecting to the address comes to.
std::string error_of_connecting(const sockaddr_storage& address) {
  LoopbackShape shape;
  shape.connect_timeout_ms = 200;
  Loopback loop({}, shape);
  Handle handle;
  handle.address = address;
  char bytes[NCCL_NET_HANDLE_MAXSIZE];
  encode_handle(handle, bytes);
  auto connecting = loop.runtime->connect(0, bytes, -1);
  if (!connecting) return connecting.error().text();
  for (int look = 0; look < 5000; look++) {
    if (auto outcome = connecting->session->poll()) return *outcome ? "" : outcome->error().text();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "nothing";
}

// Its queue is full, and what comes then is dropped, as by a firewall.
struct FullListener {
  sockaddr_storage address = any_address();
  FileDescriptor socket;
  std::vector<FileDescriptor> waiting;

  FullListener() : socket(listen_socket(&address).take()) {
    listen(socket.get(), 0);
    for (int i = 0; i < 3; i++)
      waiting.push_back(connect_socket(address).take());
  }
  // Accepts one after the other until one has said so many bytes. Those who are dropped knock again after a second.
  bool make_room_and_hear(ssize_t bytes) {
    waiting.clear();
    pollfd wait{socket.get(), POLLIN, 0};
    while (poll(&wait, 1, 20'000) == 1) {
      const FileDescriptor one(accept(socket.get(), nullptr, nullptr));
      char buffer[64];
      if (recv(one.get(), buffer, std::size_t(bytes), MSG_WAITALL) == bytes) return true;
    }
    return false;
  }
};

TEST(HandshakeSockets, F84_AConnectThatTimesOutNamesThePortAndTheVariable) {
  const FullListener listener;
  const sockaddr_storage address = listener.address;
  EXPECT_THAT(error_of_connecting(address),
              AllOf(HasSubstr("TCP connect to " + address_with_port(address) + " timed out after 200 ms"),
                    HasSubstr("WEFT_PORT_RANGE"), HasSubstr("NCCL_SOCKET_IFNAME")));
}

TEST(HandshakeSockets, F84_ARefusedConnectNamesThePort) {
  sockaddr_storage address = any_address();
  ASSERT_TRUE(listen_socket(&address));  // and closed
  EXPECT_THAT(error_of_connecting(address),
              AllOf(HasSubstr("TCP connect to " + address_with_port(address) + " failed"), HasSubstr("ECONNREFUSED")));
}

// Loopback of another host leads to this one.
TEST(HandshakeSockets, F81_ALoopbackAddressIsTheCauseThatIsNamed) {
  sockaddr_storage address = any_address();
  ASSERT_TRUE(listen_socket(&address));
  EXPECT_THAT(error_of_connecting(address), HasSubstr("the listener has its host's loopback address"));
  EXPECT_TRUE(is_loopback(any_address()));
  EXPECT_FALSE(is_loopback(any_address(0xc0000201)));
}

TEST(HandshakeSockets, F82_AScopeIsPartOfTheAddressInMessages) {
  sockaddr_storage address{};
  auto& ipv6 = reinterpret_cast<sockaddr_in6&>(address);
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(4321);
  inet_pton(AF_INET6, "fe80::1", &ipv6.sin6_addr);
  EXPECT_EQ(address_with_port(address), "[fe80::1]:4321");
  ipv6.sin6_scope_id = 1;
  EXPECT_EQ(address_with_port(address), "[fe80::1%lo]:4321");
}

// Interrupts the thread that made it, without SA_RESTART, several times a millisecond.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action {};
    action.sa_handler = [](int) { count++; };
    sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Interruptions() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
  static inline std::atomic<int> count{0};

 private:
  struct sigaction before_ {};
};

TEST(HandshakeSockets, F85_SignalsDoNotDisturbAConnection) {
  Loopback loop;
  const Interruptions interruptions;
  const int before = Interruptions::count;
  for (int i = 0; i < 20; i++) {
    auto ends = loop.connect();
    ASSERT_TRUE(ends) << ends.error().text();
  }
  EXPECT_GT(Interruptions::count - before, 20);
}

TEST(HandshakeSockets, F85_ALastWordSurvivesSignals) {
  FullListener listener;
  bool heard = false;
  std::thread room([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    heard = listener.make_room_and_hear(5);
  });
  {
    const Interruptions interruptions;
    send_and_close(listener.address, std::vector<std::byte>(5, std::byte(7)), 20'000);
  }
  room.join();
  EXPECT_TRUE(heard) << "it never got through";
}

// Passes on what two sockets say to each other, one byte at a time, until one of them closes.
void relay(int left, int right) {
  pollfd waits[] = {{left, POLLIN, 0}, {right, POLLIN, 0}};
  while (poll(waits, 2, 5000) > 0) {
    for (int side = 0; side < 2; side++) {
      if (waits[side].revents == 0) continue;
      char byte = 0;
      if (recv(waits[side].fd, &byte, 1, 0) != 1) return;
      if (send(waits[1 - side].fd, &byte, 1, MSG_NOSIGNAL) != 1) return;
    }
  }
}

FileDescriptor blocking(FileDescriptor socket) {
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket.get(), F_SETFL, 0);
  return socket;
}

TEST(HandshakeSockets, F85_APeerThatSaysOneByteAtATimeIsUnderstood) {
  settings::Settings settings;
  settings.socket_family = "AF_INET";
  Loopback loop(settings);
  char bytes[NCCL_NET_HANDLE_MAXSIZE];
  auto listening = loop.runtime->listen(0, bytes);
  ASSERT_TRUE(listening) << listening.error().text();
  Handle handle = decode_handle(bytes).take();
  const sockaddr_storage real = handle.address;
  handle.address = any_address();
  auto between = listen_socket(&handle.address);
  ASSERT_TRUE(between);
  encode_handle(handle, bytes);
  std::thread passing([&] {
    pollfd wait{between->get(), POLLIN, 0};
    poll(&wait, 1, 5000);
    const FileDescriptor left = blocking(FileDescriptor(accept(between->get(), nullptr, nullptr)));
    auto connected = connect_socket(real);
    wait = {connected->get(), POLLOUT, 0};
    poll(&wait, 1, 5000);
    const FileDescriptor right = blocking(connected.take());
    relay(left.get(), right.get());
  });
  auto connecting = loop.runtime->connect(0, bytes, -1);
  ASSERT_TRUE(connecting) << connecting.error().text();
  std::optional<Result<Engine>> sender, receiver;
  for (int look = 0; look < 5000 && (!sender || !receiver); look++) {
    if (!sender) sender = connecting->session->poll();
    for (const auto& session : listening->listener->sessions())
      if (!receiver) receiver = session->poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(sender && receiver) << "no outcome in time";
  EXPECT_TRUE(*sender) << sender->error().text();
  EXPECT_TRUE(*receiver) << receiver->error().text();
  connecting->control->call(connecting->session, [&] { connecting->session->say_closing(); });
  connecting->control->remove(connecting->session);
  connecting->session.reset();
  passing.join();
}

}  // namespace
}  // namespace weft::setup
