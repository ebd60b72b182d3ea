// `weft figures data-plane`: the transports alone, through NCCL's net interface (tests/rig/rank/README.md), Weft beside
// NCCL's own IB transport in its default setting.
#pragma once

#include <string>
#include <vector>

#include "bench/weft/figures/foundation.h"

namespace weft::figures {

Result<std::vector<Point>> measure_data_plane(const std::string& rig, const std::vector<std::uint64_t>& seeds);

}  // namespace weft::figures
