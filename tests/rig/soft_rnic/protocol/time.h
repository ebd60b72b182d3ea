// Time of the protocol: nanoseconds of a monotonic clock that the caller supplies, so that tests can run it at will.
#pragma once

#include <cstdint>
#include <limits>

namespace weft::soft_rnic {

using Nanoseconds = std::int64_t;
inline constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();
inline constexpr Nanoseconds kMicrosecond = 1000;
inline constexpr Nanoseconds kMillisecond = 1000 * kMicrosecond;

}  // namespace weft::soft_rnic
