// One connection of a net_* operation, one side of it, with its message buffers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/rank/exchange.h"
#include "tests/rig/rank/net_interface.h"

namespace weft::rank {

struct NetEnd {
  bool sends = false;
  std::string name;  // of the connection, the same at both ends: the listen handle goes by it
  std::size_t bytes = 0;
  int in_flight = 1;
};

class NetConnection {
 public:
  NetConnection(versions::NetInterface& net, const NetEnd& end);
  ~NetConnection();
  NetConnection(const NetConnection&) = delete;
  NetConnection& operator=(const NetConnection&) = delete;

  // A step towards being connected, as NCCL takes them: again and again, until connected(). An error names the call.
  Result<void> listen(int device, Exchange& exchange);
  Result<void> connect(int device, Exchange& exchange, Deadline deadline);
  bool connected() const { return registered_; }

  // From now on `messages` more are to be sent or received.
  void begin(int messages);
  // Starts and finishes what it can.
  Result<void> advance();
  bool finished() const { return done_ == wanted_; }

  // Receiver: bytes that differed from what was sent, so far.
  std::size_t wrong() const { return wrong_; }
  // Receiver: how long each message took since the last call, from its offer to its completion, microseconds.
  std::vector<double> take_message_times();

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    void* request = nullptr;
    Clock::time_point offered;
  };
  Result<void> check(const char* call, ncclResult_t code) const;
  std::byte* buffer(std::uint64_t message) { return buffers_.data() + std::size_t(message % slots_.size()) * stride_; }
  void stamp(std::uint64_t message);
  void inspect(std::uint64_t message, int size);

  versions::NetInterface& net_;
  const NetEnd end_;
  const std::size_t stride_;
  std::vector<std::byte> buffers_;
  std::vector<Slot> slots_;
  char handle_[128] = {};
  bool has_handle_ = false;
  void* listening_ = nullptr;
  void* comm_ = nullptr;
  void* memory_ = nullptr;  // null with NCCL's Socket transport, which registers nothing
  bool registered_ = false;
  std::uint64_t started_ = 0, done_ = 0, wanted_ = 0;
  std::size_t wrong_ = 0;
  std::vector<double> message_us_;
};

}  // namespace weft::rank
