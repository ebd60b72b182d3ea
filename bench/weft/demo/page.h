// The demo's HTML page: one file, no outside resources, readable on a phone and in dark mode.
#pragma once

#include <string>
#include <vector>

#include "bench/weft/demo/comparison.h"

namespace weft::demo {

std::string page(const std::vector<Comparison>& comparisons, const std::vector<std::uint64_t>& seeds);

}  // namespace weft::demo
