// Messages over a loopback connection, every byte of which is looked at.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/net_plugin/fake/loopback.h"

namespace weft::fake {

// Sends `size` bytes and checks every one.
class Carrier {
 public:
  Carrier(Loopback& loop, std::size_t most, bool device_memory = false) : from_(most), to_(most) {
    from_memory_ = loop.registration(from_.data(), most, false, device_memory);
    to_memory_ = loop.registration(to_.data(), most, true, device_memory);
  }

  testing::AssertionResult carry(transfer::Sender& sender, transfer::Receiver& receiver, std::size_t size) {
    for (std::size_t i = 0; i < size; i++)
      from_[i] = std::uint8_t(i * 31 + count_);
    std::fill(to_.begin(), to_.end(), std::uint8_t(0xee));
    count_++;
    transfer::Request *receive = nullptr, *send = nullptr;
    const transfer::Receive offer{to_.data(), to_.size(), 0, &to_memory_};
    bool sent = false, received = false;
    for (int look = 0; look < 1'000'000 && !(sent && received); look++) {
      transfer::Progress progress = transfer::Progress::done;
      if (!receive) progress = receiver.receive(&offer, 1, &receive);
      if (receive && !send) progress = sender.send(from_.data(), size, 0, from_memory_, &send);
      if (progress == transfer::Progress::failed) return testing::AssertionFailure() << problem(sender, receiver);
      int bytes = -1;
      if (send && !sent) sent = sender.test(*send, &bytes) == transfer::Progress::done;
      if (receive && !received) received = receiver.test(*receive, &bytes) == transfer::Progress::done;
      if (sender.link().failed() || receiver.link().failed())
        return testing::AssertionFailure() << problem(sender, receiver);
    }
    if (!sent || !received) return testing::AssertionFailure() << "not finished";
    if (std::memcmp(from_.data(), to_.data(), size) != 0) return testing::AssertionFailure() << "wrong bytes";
    return testing::AssertionSuccess();
  }

  const transfer::Receive received() const {
    return {const_cast<std::uint8_t*>(to_.data()), to_.size(), 0, &to_memory_};
  }

 private:
  static std::string problem(transfer::Sender& sender, transfer::Receiver& receiver) {
    for (transfer::Link* link : {&sender.link(), &receiver.link()})
      if (link->failed()) return link->failure()->error.text();
    return "a call failed without a cause";
  }

  std::vector<std::uint8_t> from_, to_;
  transfer::Registration from_memory_, to_memory_;
  unsigned count_ = 0;
};

}  // namespace weft::fake
