// Two ends of a reliable connection on a simulated network, for tests of the protocol: no socket, no clock, every
// schedule reproducible from its seed.
#pragma once

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "tests/rig/soft_rnic/protocol/receive_queue.h"
#include "tests/rig/soft_rnic/protocol/requester.h"
#include "tests/rig/soft_rnic/protocol/responder.h"

namespace weft::soft_rnic::test {

// What the network does to packets, each in parts per thousand.
struct Weather {
  int lose = 0;
  int duplicate = 0;
  int overtake = 0;  // delayed so that later packets pass
  Nanoseconds overtake_by = 200 * kMicrosecond;
  int refuse = 0;  // the local socket is full
  Nanoseconds latency = 20 * kMicrosecond;
};

class CompletionList final : public CompletionSink {
 public:
  void add(const ibv_wc& completion, bool solicited) override {
    completions.push_back(completion);
    solicitations.push_back(solicited);
  }
  std::vector<ibv_wc> completions;
  std::vector<bool> solicitations;
};

// One registered region per host, reachable with one key.
class HostMemory final : public RemoteMemory {
 public:
  static constexpr std::uint32_t kKey = 0x700;
  static constexpr std::uint64_t kAddress = 0x10000000;

  explicit HostMemory(std::size_t size) : bytes(size) {}
  std::uint8_t* find(std::uint32_t key, std::uint64_t address, std::uint64_t length, int access) override;
  void store(std::uint8_t* destination, std::span<const std::uint8_t> payload) override;
  void before_read() override { ++reads; }

  std::vector<std::uint8_t> bytes;
  int granted = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  int reads = 0;
  std::uint64_t stored = 0;
};

struct End {
  End(std::uint32_t number, std::size_t memory_size, std::size_t queue_depth);
  std::uint32_t number;
  HostMemory memory;
  CompletionList sent;
  CompletionList received;
  ReceiveQueue receives;
  Requester requester;
  Responder responder;
};

class Simulation {
 public:
  Simulation(std::uint32_t seed, const Weather& weather, const RequesterSettings& settings = {},
             std::size_t memory_size = 1 << 20);

  End& left() { return *ends_[0]; }
  End& right() { return *ends_[1]; }
  Nanoseconds now() const { return now_; }
  Weather& weather() { return weather_; }
  std::mt19937& random() { return random_; }

  // Runs until nothing moves and no timer is armed, or for this long.
  void run(Nanoseconds at_most = 1000 * kMillisecond);
  // Packets put on the wire so far, lost ones included.
  std::uint64_t packets() const { return packets_; }
  bool wrote_malformed_packet() const { return malformed_; }

 private:
  struct InFlight {
    Nanoseconds due;
    std::uint64_t order;
    std::size_t to;
    std::vector<std::uint8_t> bytes;
  };

  bool happens(int per_thousand) { return static_cast<int>(random_() % 1000) < per_thousand; }
  void send_all();
  void pull(PacketSource& source, std::size_t from);
  void put_on_wire(const OutgoingPacket& packet, std::size_t to);
  void deliver(const InFlight& packet);
  Nanoseconds next_event() const;

  std::mt19937 random_;
  Weather weather_;
  std::unique_ptr<End> ends_[2];
  std::vector<InFlight> wire_;
  Nanoseconds now_ = kMillisecond;
  Nanoseconds refused_until_ = 0;
  std::uint64_t packets_ = 0;
  bool malformed_ = false;
};

// A request with its memory at `offset` of the sender's and of the receiver's region.
SendRequest& prepare(End& end, ibv_wr_opcode opcode, std::uint64_t id, std::size_t offset, std::uint32_t length);
void post_receive(End& end, std::uint64_t id, std::size_t offset = 0, std::uint32_t length = 0);

}  // namespace weft::soft_rnic::test
