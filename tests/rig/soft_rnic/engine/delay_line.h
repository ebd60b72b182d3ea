// Packets that have arrived but are held for a fixed time (the delay_us fault).
#pragma once

#include <deque>
#include <vector>

#include "tests/rig/soft_rnic/protocol/time.h"
#include "tests/rig/soft_rnic/transport/receiver.h"

namespace weft::soft_rnic {

class DelayLine {
 public:
  void add(const Arrival& arrival, Nanoseconds due);
  Nanoseconds deadline() const { return held_.empty() ? kNever : held_.front().due; }
  // Calls `visit(Arrival)` for every packet that is due, in order.
  template <class Visitor>
  void release(Nanoseconds now, Visitor&& visit) {
    while (!held_.empty() && held_.front().due <= now) {
      Held held = std::move(held_.front());
      held_.pop_front();
      held.arrival.udp_payload = held.bytes;
      visit(held.arrival);
    }
  }

 private:
  struct Held {
    Nanoseconds due;
    Arrival arrival;
    std::vector<std::uint8_t> bytes;
  };
  std::deque<Held> held_;
};

}  // namespace weft::soft_rnic
