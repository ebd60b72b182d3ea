// The file that users deploy, driven through every version of its interface over the software NIC on this machine's
// loopback: connection and registration on one thread, progress on another, as NCCL does it. Each version in a process
// of its own: ctest runs every test by itself.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/rig/rank/net_interface.h"

namespace weft::versions {
namespace {

using Clock = std::chrono::steady_clock;

std::string log_text;

void logger(ncclDebugLogLevel level, unsigned long, const char*, int, const char* form, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(line, sizeof line, form, arguments);
  va_end(arguments);
  if (level == NCCL_LOG_WARN) log_text += std::string(line) + '\n';
}

class Versions : public testing::TestWithParam<int> {
 protected:
  explicit Versions(int nics = 1, int queue_pairs = 65535) : nics_(nics), queue_pairs_(queue_pairs) {}

  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("weft-versions-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    nlohmann::json nics = nlohmann::json::array();
    for (int i = 0; i < nics_; i++) {
      const std::string address = "127.19." + std::to_string(getpid() % 250 + 1) + "." + std::to_string(2 + i);
      nics.push_back({{"name", "mlx5_" + std::to_string(i)},
                      {"netdev", "lo"},
                      {"address", address},
                      {"guid", "0x000000000000000" + std::to_string(1 + i)},
                      {"caps", {{"max_qp", queue_pairs_}}},
                      {"gids", {{{"gid", "::ffff:" + address}}}}});
    }
    std::ofstream(folder_ / "host.json") << nlohmann::json{{"host", "h1"}, {"nics", nics}};
    setenv("RIG_HOST_FILE", (folder_ / "host.json").c_str(), 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("WEFT_PATHS", "4", 1);
    library_ = dlopen(WEFT_NET_FILE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library_) << dlerror();
    const std::string symbol = "ncclNetPlugin_v" + std::to_string(GetParam());
    const void* table = dlsym(library_, symbol.c_str());
    ASSERT_TRUE(table) << symbol;
    net_ = adapt(GetParam(), table);
    ASSERT_EQ(net_->init(logger), ncclSuccess);
  }

  void TearDown() override {
    EXPECT_EQ(net_->finalize(), ncclSuccess);
    dlclose(library_);
    std::filesystem::remove_all(folder_);
  }

  // As NCCL's service thread: neither call blocks, both are made again and again.
  void connect(int device = 0) {
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {}, copy[NCCL_NET_HANDLE_MAXSIZE];
    void* listening = nullptr;
    ASSERT_EQ(net_->listen(device, handle, &listening), ncclSuccess);
    ASSERT_TRUE(listening);
    std::memcpy(copy, handle, sizeof copy);
    const auto limit = Clock::now() + std::chrono::seconds(15);
    while ((!send_ || !receive_) && Clock::now() < limit) {
      if (!send_) {
        ASSERT_EQ(net_->connect(device, copy, &send_), ncclSuccess) << log_text;
      }
      if (!receive_) {
        ASSERT_EQ(net_->accept(listening, &receive_), ncclSuccess) << log_text;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(send_ && receive_) << log_text;
    EXPECT_EQ(net_->close_listen(listening), ncclSuccess);
  }

  // NCCL's progress thread asks until there is a request.
  void* start(const std::function<ncclResult_t(void**)>& call) {
    void* request = nullptr;
    const auto limit = Clock::now() + std::chrono::seconds(15);
    while (!request && Clock::now() < limit) {
      EXPECT_EQ(call(&request), ncclSuccess) << log_text;
    }
    EXPECT_TRUE(request);
    return request;
  }

  // Asks for all in turn until all are done: a sender moves while it is asked. `sizes`: of the receive.
  void finish(void* receive, int* sizes, std::vector<void*> sends) {
    const auto limit = Clock::now() + std::chrono::seconds(15);
    int received = 0;
    while ((!received || !sends.empty()) && Clock::now() < limit) {
      if (!received) {
        ASSERT_EQ(net_->test(receive, &received, sizes), ncclSuccess) << log_text;
      }
      std::erase_if(sends, [&](void* send) {
        int sent = 0;
        EXPECT_EQ(net_->test(send, &sent, nullptr), ncclSuccess) << log_text;
        return sent != 0;
      });
    }
    ASSERT_TRUE(received && sends.empty());
  }

  // Sizes of all kinds, every byte checked; closes the connection.
  void move_messages() {
    constexpr std::size_t kMost = (2 << 20) + 100;
    std::vector<std::uint8_t> from(kMost), to(kMost);
    for (std::size_t i = 0; i < kMost; i++)
      from[i] = std::uint8_t(i * 31 + i / 253);
    void *from_memory = nullptr, *to_memory = nullptr;
    ASSERT_EQ(net_->register_memory(send_, from.data(), kMost, NCCL_PTR_HOST, &from_memory), ncclSuccess);
    ASSERT_EQ(net_->register_memory(receive_, to.data(), kMost, NCCL_PTR_HOST, &to_memory), ncclSuccess);
    std::thread progress([&] {
      for (const std::size_t size : {0, 1, 4097, 100'001, 2 << 20}) {
        std::fill(to.begin(), to.end(), 0xee);
        void* receive = start([&](void** request) {
          return net_->irecv(receive_, {to.data() + 1}, {size + 7}, {5}, {to_memory}, request);
        });
        void* send =
            start([&](void** request) { return net_->isend(send_, from.data() + 3, size, 5, from_memory, request); });
        int sizes[8] = {};
        finish(receive, sizes, {send});
        EXPECT_EQ(sizes[0], int(size));
        EXPECT_EQ(std::memcmp(to.data() + 1, from.data() + 3, size), 0) << size;
        EXPECT_EQ(to[size + 1], 0xee);
        void* flush = reinterpret_cast<void*>(1);
        EXPECT_EQ(net_->iflush(receive_, to.data() + 1, int(size), to_memory, &flush), ncclSuccess);
        EXPECT_EQ(flush, nullptr) << "host memory needs no flush";
      }
    });
    progress.join();
    EXPECT_EQ(net_->deregister(send_, from_memory), ncclSuccess);
    EXPECT_EQ(net_->deregister(receive_, to_memory), ncclSuccess);
    EXPECT_EQ(net_->close_send(send_), ncclSuccess);
    EXPECT_EQ(net_->close_receive(receive_), ncclSuccess);
    EXPECT_EQ(log_text, "");
  }

  const int nics_, queue_pairs_;
  std::filesystem::path folder_;
  void* library_ = nullptr;
  std::unique_ptr<NetInterface> net_;
  void* send_ = nullptr;
  void* receive_ = nullptr;
};

TEST_P(Versions, SaysWhatItsDevicesCan) {
  int count = 0;
  ASSERT_EQ(net_->devices(&count), ncclSuccess);
  ASSERT_EQ(count, 1);
  Properties properties;
  ASSERT_EQ(net_->properties(0, &properties), ncclSuccess);
  EXPECT_EQ(properties.name, "mlx5_0");
  EXPECT_EQ(properties.speed, 100'000);
  EXPECT_EQ(properties.max_receives, 8);
  EXPECT_EQ(properties.members, 1);
  EXPECT_EQ(properties.first_member, 0);
  EXPECT_EQ(properties.max_multi_request, 1);
  EXPECT_EQ(properties.max_p2p_bytes, std::size_t(1) << 30);
  EXPECT_LE(properties.max_coll_bytes, std::size_t(1) << 40);
  EXPECT_GE(properties.max_coll_bytes, 1u);
  EXPECT_EQ(properties.pointer_support, NCCL_PTR_HOST);
  EXPECT_EQ(properties.rail, -1);
  EXPECT_EQ(properties.plane, -1);
  if (GetParam() >= 8) {
    EXPECT_EQ(properties.reg_is_global, 1);
  }
  EXPECT_NE(net_->properties(1, &properties), ncclSuccess);
}

TEST_P(Versions, MovesMessages) {
  ASSERT_NO_FATAL_FAILURE(connect());
  move_messages();
}

TEST_P(Versions, GroupsReceivesByTag) {
  ASSERT_NO_FATAL_FAILURE(connect());
  constexpr std::size_t kSize = 3000;
  std::vector<std::uint8_t> from(8 * kSize), to(8 * kSize);
  for (std::size_t i = 0; i < from.size(); i++)
    from[i] = std::uint8_t(i / kSize + i * 13);
  void *from_memory = nullptr, *to_memory = nullptr;
  ASSERT_EQ(net_->register_memory(send_, from.data(), from.size(), NCCL_PTR_HOST, &from_memory), ncclSuccess);
  ASSERT_EQ(net_->register_memory(receive_, to.data(), to.size(), NCCL_PTR_HOST, &to_memory), ncclSuccess);
  std::vector<void*> data, memory;
  std::vector<std::size_t> sizes;
  std::vector<int> tags;
  for (std::size_t i = 0; i < 8; i++) {
    data.push_back(to.data() + i * kSize);
    memory.push_back(to_memory);
    sizes.push_back(kSize);
    tags.push_back(40 + int(i));
  }
  void* receive = start([&](void** request) { return net_->irecv(receive_, data, sizes, tags, memory, request); });
  std::vector<void*> sends;
  for (const std::size_t i : {7, 0, 3, 1, 6, 2, 5, 4}) {
    sends.push_back(start([&](void** request) {
      return net_->isend(send_, from.data() + i * kSize, kSize - i, 40 + int(i), from_memory, request);
    }));
  }
  int reported[8] = {};
  finish(receive, reported, sends);
  for (std::size_t i = 0; i < 8; i++) {
    EXPECT_EQ(reported[i], int(kSize - i));
    EXPECT_EQ(std::memcmp(to.data() + i * kSize, from.data() + i * kSize, kSize - i), 0) << i;
  }
  net_->deregister(send_, from_memory);
  net_->deregister(receive_, to_memory);
  net_->close_send(send_);
  net_->close_receive(receive_);
}

TEST_P(Versions, CanBeInitialisedAgain) {
  EXPECT_EQ(net_->finalize(), ncclSuccess);
  ASSERT_EQ(net_->init(logger), ncclSuccess);
  int count = 0;
  ASSERT_EQ(net_->devices(&count), ncclSuccess);
  EXPECT_EQ(count, 1);
  ASSERT_NO_FATAL_FAILURE(connect());
  // Closed with everything outstanding, as an abort does.
  net_->close_send(send_);
  net_->close_receive(receive_);
}

// Two NICs as one, as NCCL 2.24 and later ask for it.
class MergingVersions : public Versions {
 protected:
  MergingVersions() : Versions(2) {}
};

TEST_P(MergingVersions, CarryOneConnectionOverTwoNics) {
  int merged = -1;
  ASSERT_EQ(net_->merge({0, 1}, &merged), ncclSuccess);
  EXPECT_EQ(merged, 2);
  int count = 0;
  ASSERT_EQ(net_->devices(&count), ncclSuccess);
  EXPECT_EQ(count, 3);
  Properties properties;
  ASSERT_EQ(net_->properties(merged, &properties), ncclSuccess);
  EXPECT_EQ(properties.name, "mlx5_0+mlx5_1");
  EXPECT_EQ(properties.members, 2);
  EXPECT_EQ(properties.first_member, 0);
  EXPECT_EQ(properties.speed, 200'000);
  EXPECT_NE(net_->merge({0, 7}, &merged), ncclSuccess);
  EXPECT_NE(net_->merge({2, 1}, &merged), ncclSuccess) << "a part that is several already";
  ASSERT_NO_FATAL_FAILURE(connect(2));
  move_messages();
}

// Field report F87: jobs make and leave communicators all day. Each here has two connections, one given up in the
// middle of its handshake, and moves a message; the NIC has queue pairs for a few at a time only.
class Communicators : public Versions {
 protected:
  Communicators() : Versions(1, 64) {}

  struct Held {
    long descriptors = 0, threads = 0, kilobytes = 0;
  };
  static long entries(const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }
  // Once nothing but the test's own thread is left: one that has been joined stays in /proc until the kernel has let go
  // of it, and what a process gives up goes when its threads come to it.
  static Held held() {
    for (int look = 0; look < 250 && entries("/proc/self/task") > 1; look++)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Held now{entries("/proc/self/fd"), entries("/proc/self/task"), 0};
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("VmRSS:", 0) == 0) now.kilobytes = std::stol(line.substr(6));
    }
    return now;
  }

  void live() {
    ASSERT_EQ(net_->init(logger), ncclSuccess);
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    void *listening = nullptr, *given_up = nullptr;
    ASSERT_EQ(net_->listen(0, handle, &listening), ncclSuccess);
    // Before v11 the plugin is not told when a communicator goes; what was given up then lives for 30 s.
    if (GetParam() >= 11) {
      ASSERT_EQ(net_->connect(0, handle, &given_up), ncclSuccess);
      // On a busy machine it may be up by now.
      if (given_up) {
        EXPECT_EQ(net_->close_send(given_up), ncclSuccess);
      }
    }
    EXPECT_EQ(net_->close_listen(listening), ncclSuccess);
    send_ = receive_ = nullptr;
    ASSERT_NO_FATAL_FAILURE(connect());
    std::vector<std::uint8_t> from(100'000, 7), to(100'000);
    void *from_memory = nullptr, *to_memory = nullptr;
    ASSERT_EQ(net_->register_memory(send_, from.data(), from.size(), NCCL_PTR_HOST, &from_memory), ncclSuccess);
    ASSERT_EQ(net_->register_memory(receive_, to.data(), to.size(), NCCL_PTR_HOST, &to_memory), ncclSuccess);
    void* receive = start(
        [&](void** request) { return net_->irecv(receive_, {to.data()}, {to.size()}, {0}, {to_memory}, request); });
    void* send =
        start([&](void** request) { return net_->isend(send_, from.data(), from.size(), 0, from_memory, request); });
    int sizes[8] = {};
    ASSERT_NO_FATAL_FAILURE(finish(receive, sizes, {send}));
    EXPECT_EQ(from, to);
    EXPECT_EQ(net_->deregister(send_, from_memory), ncclSuccess);
    EXPECT_EQ(net_->deregister(receive_, to_memory), ncclSuccess);
    EXPECT_EQ(net_->close_send(send_), ncclSuccess);
    EXPECT_EQ(net_->close_receive(receive_), ncclSuccess);
    EXPECT_EQ(net_->finalize(), ncclSuccess);
  }
};

TEST_P(Communicators, F87_AThousandLeaveNothingBehind) {
  setenv("WEFT_GROW_AFTER_BYTES", "0", 1);
  EXPECT_EQ(net_->finalize(), ncclSuccess);
  for (int i = 0; i < 100; i++)
    ASSERT_NO_FATAL_FAILURE(live());
  const Held before = held();
  for (int i = 100; i < 1000; i++)
    ASSERT_NO_FATAL_FAILURE(live()) << i;
  const Held after = held();
  EXPECT_EQ(before.threads, 1);
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.threads, before.threads);
  // A connection holds more than 60 KiB; the allocator may keep a little for each thread there has been.
  EXPECT_LE(after.kilobytes, before.kilobytes + 900 * 9);
  ASSERT_EQ(net_->init(logger), ncclSuccess);
}

INSTANTIATE_TEST_SUITE_P(Of, Communicators, testing::Values(8, 11),
                         [](const auto& one) { return "v" + std::to_string(one.param); });
INSTANTIATE_TEST_SUITE_P(Of, MergingVersions, testing::Range(9, 13),
                         [](const auto& one) { return "v" + std::to_string(one.param); });
INSTANTIATE_TEST_SUITE_P(Of, Versions, testing::Range(6, 13),
                         [](const auto& one) { return "v" + std::to_string(one.param); });

}  // namespace
}  // namespace weft::versions
