// A running estimate of the time from a packet to its acknowledgement, one sample at a time.
#pragma once

#include "tests/rig/soft_rnic/protocol/psn.h"
#include "tests/rig/soft_rnic/protocol/time.h"

namespace weft::soft_rnic {

class RoundTrip {
 public:
  // Packet `psn` leaves for the first time. Ignored while another sample is under way.
  void on_sent(Psn psn, Nanoseconds now);
  // Everything before `end` is acknowledged.
  void on_acknowledged(Psn end, Nanoseconds now);
  // Something is sent again: the sample under way would be ambiguous.
  void on_retransmission() { under_way_ = false; }

  // 0 before the first sample.
  Nanoseconds smoothed() const { return smoothed_; }

 private:
  bool under_way_ = false;
  Psn psn_ = 0;
  Nanoseconds sent_at_ = 0;
  Nanoseconds smoothed_ = 0;
};

}  // namespace weft::soft_rnic
