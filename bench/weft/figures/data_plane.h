// `weft figures data-plane`: the transports alone, through NCCL's net interface (tests/rig/rank/README.md), Weft beside
// NCCL's own IB transport in its default setting; with `grid` also in every setting of its number of queue pairs and of
// whether they share a message, on four spines.
#pragma once

#include <string>
#include <vector>

#include "bench/weft/figures/foundation.h"

namespace weft::figures {

Result<std::vector<Point>> measure_data_plane(const std::string& rig, const std::vector<std::uint64_t>& seeds,
                                              bool grid);

}  // namespace weft::figures
