#include "tests/rig/soft_rnic/engine/delay_line.h"

#include <algorithm>

namespace weft::soft_rnic {

void DelayLine::add(const Arrival& arrival, Nanoseconds due) {
  // A delay that has just been lowered must not let packets overtake those before them.
  if (!held_.empty()) due = std::max(due, held_.back().due);
  held_.push_back({due, arrival, {arrival.udp_payload.begin(), arrival.udp_payload.end()}});
}

}  // namespace weft::soft_rnic
