#include "bench/weft/demo/demo_command.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "bench/weft/demo/page.h"
#include "bench/weft/demo/rig_process.h"
#include "common/text/format.h"

namespace weft::demo {
namespace {

constexpr std::size_t kFewestSeeds = 1;

Result<void> write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return system_error("cannot write", errno, path);
  return {};
}

// Before minutes of runs, not after them.
Result<void> can_be_written(const std::string& path) {
  if (path.empty() || path == "-") return {};
  const bool existed = std::filesystem::exists(path);
  if (!std::ofstream(path, std::ios::app)) return system_error("cannot write", errno, path);
  if (!existed) std::filesystem::remove(path);
  return {};
}

}  // namespace

int complain(const Error& error, int code) {
  std::fprintf(stderr, "weft: %s\n", error.text().c_str());
  return code;
}

Result<std::vector<FabricChoice>> fabrics() {
  auto one = find_scenario("one_to_one.json");
  if (!one) return one.take_error();
  auto fat = find_scenario("fat_nic.json");
  if (!fat) return fat.take_error();
  return std::vector<FabricChoice>{
      {"1:1", one.take(),
       "Two leaves with four one-NIC hosts each, four spines, NIC rate = spine-link rate, and a ring whose every hop "
       "crosses the spines: what clusters look "
       "like. The slowest NIC decides."},
      {"fat NIC", fat.take(),
       "Two hosts with two NICs on two rails; one NIC is as fast as four spine links. Shows striping."}};
}

Result<std::vector<std::uint64_t>> parse_seeds(const std::string& text) {
  std::vector<std::uint64_t> seeds;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string word = text.substr(start, comma - start);
    std::uint32_t seed = 0;
    const auto [stopped, problem] = std::from_chars(word.data(), word.data() + word.size(), seed);
    if (problem != std::errc() || stopped != word.data() + word.size() || seed == 0) {
      return Error{text::format("\"{}\" is not a seed", word), "--seeds", 0,
                   "allowed: whole numbers from 1 to 4294967295, separated by commas"};
    }
    if (std::find(seeds.begin(), seeds.end(), seed) != seeds.end())
      return Error{text::format("seed {} stands twice", seed), "--seeds", 0, {}};
    seeds.push_back(seed);
    start = comma + 1;
  }
  if (seeds.size() < kFewestSeeds) return Error{"no seed given", "--seeds", 0, {}};
  return seeds;
}

int run_demo(const DemoOptions& options) {
  auto seeds = parse_seeds(options.seeds);
  if (!seeds) return complain(seeds.error(), kUsage);
  auto choices = fabrics();
  if (!choices) return complain(choices.error(), kLacking);
  for (const std::string& path : {options.html, options.json}) {
    if (auto able = can_be_written(path); !able) return complain(able.error(), kUsage);
  }
  const std::string rig = options.rig.empty() ? own_folder() + "/rig" : options.rig;
  const auto progress = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  progress(text::format("{} runs of stock NCCL on two emulated fabrics, 10 to 25 s each", 4 * seeds->size()));
  std::vector<Comparison> comparisons;
  for (const FabricChoice& fabric : *choices) {
    auto comparison = compare(fabric, *seeds, rig_runner(rig), progress);
    if (!comparison) return complain(comparison.error(), comparison.error().code == ENOENT ? kLacking : kFailed);
    comparisons.push_back(comparison.take());
  }
  if (options.json != "-") std::printf("\n%s", table(comparisons).c_str());
  if (auto written = write_file(options.html, page(comparisons, *seeds)); !written)
    return complain(written.error(), kUsage);
  if (!options.json.empty()) {
    if (auto written = write_file(options.json, to_json(comparisons, *seeds).dump(1) + "\n"); !written)
      return complain(written.error(), kUsage);
  }
  if (options.json != "-") std::printf("\nThe pictures: %s\n", std::filesystem::absolute(options.html).c_str());
  return kDone;
}

}  // namespace weft::demo
