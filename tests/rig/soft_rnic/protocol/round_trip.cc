#include "tests/rig/soft_rnic/protocol/round_trip.h"

namespace weft::soft_rnic {

void RoundTrip::on_sent(Psn psn, Nanoseconds now) {
  if (under_way_) return;
  under_way_ = true;
  psn_ = psn;
  sent_at_ = now;
}

void RoundTrip::on_acknowledged(Psn end, Nanoseconds now) {
  if (!under_way_ || psn_ >= end) return;
  under_way_ = false;
  const Nanoseconds sample = now - sent_at_;
  // Rises at once and falls slowly: a queue that has just grown must not look like a loss.
  smoothed_ = sample > smoothed_ ? sample : smoothed_ - (smoothed_ - sample) / 8;
}

}  // namespace weft::soft_rnic
