// `weft demo`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/weft/demo/comparison.h"

namespace weft::demo {

// Exit codes of every sub-command.
inline constexpr int kDone = 0, kFailed = 1, kUsage = 2, kLacking = 3;

// The fabrics of the demo, the headline first.
Result<std::vector<FabricChoice>> fabrics();

// "7,8,9"; distinct, not 0.
Result<std::vector<std::uint64_t>> parse_seeds(const std::string& text);
inline constexpr const char* kDefaultSeeds = "1,2,3,4,5";

int complain(const Error& error, int code);

struct DemoOptions {
  std::string seeds = kDefaultSeeds;
  std::string json;
  std::string html = "weft-demo.html";
  std::string rig;  // empty: next to this command
};

int run_demo(const DemoOptions& options);

}  // namespace weft::demo
