#include "bench/weft/demo/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace weft::demo {
namespace {

using Json = nlohmann::ordered_json;

Result<Run> run_side(const FabricChoice& fabric, std::uint64_t seed, const char* net, const RunScenario& run, Comparison& comparison) {
  auto result = run(fabric.scenario, {fmt::format("net={}", net), fmt::format("fabric.hash_seed={}", seed)});
  if (!result) return result.take_error();
  const nlohmann::json& json = *result;
  if (json.value("verdict", "") != "pass") {
    return Error{fmt::format("the run with {} and hash seed {} failed: {}", net, seed, json.value("reason", "no reason given")),
                 fabric.scenario, 0, {}};
  }
  const nlohmann::json& operation = json["operations"][0];
  comparison.op = operation["op"];
  comparison.bytes = operation["bytes"];
  Run out;
  out.seed = seed;
  out.busbw_mbps = operation["busbw_mbps"]["median"];
  out.share = operation["share"]["median"];
  for (const auto& spine : json["fabric"]["spines"]) out.spine_bytes[spine["name"]] = spine["bytes"];
  return out;
}

Json range_json(const statistics::Range& range) { return {{"median", range.median}, {"min", range.min}, {"max", range.max}}; }

Json side_json(const std::vector<Run>& runs) {
  Json out = {{"busbw_mbps", range_json(statistics::range(bandwidths(runs)))}, {"share", range_json(statistics::range(shares(runs)))}};
  out["runs"] = Json::array();
  for (const Run& run : runs) {
    out["runs"].push_back({{"seed", run.seed}, {"busbw_mbps", run.busbw_mbps}, {"share", run.share}, {"spine_bytes", run.spine_bytes}});
  }
  return out;
}

double slowest_spine(const std::vector<Run>& runs) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(run.least_used_spine());
  return statistics::median(values);
}

}  // namespace

double Run::least_used_spine() const {
  double sum = 0, least = 0;
  bool first = true;
  for (const auto& [name, bytes] : spine_bytes) {
    sum += bytes;
    least = first ? bytes : std::min(least, bytes);
    first = false;
  }
  return sum > 0 ? least / (sum / double(spine_bytes.size())) : 0;
}

std::vector<double> bandwidths(const std::vector<Run>& runs) {
  std::vector<double> out;
  for (const Run& run : runs) out.push_back(run.busbw_mbps);
  return out;
}

std::vector<double> shares(const std::vector<Run>& runs) {
  std::vector<double> out;
  for (const Run& run : runs) out.push_back(run.share);
  return out;
}

Result<Comparison> compare(const FabricChoice& fabric, const std::vector<std::uint64_t>& seeds, const RunScenario& run,
                           const Progress& progress) {
  Comparison comparison;
  comparison.fabric = fabric;
  for (std::size_t i = 0; i < seeds.size(); i++) {
    const char* order[] = {i % 2 == 0 ? "ib" : "weft", i % 2 == 0 ? "weft" : "ib"};
    for (const char* net : order) {
      auto one = run_side(fabric, seeds[i], net, run, comparison);
      if (!one) return one.take_error();
      const bool is_weft = std::string(net) == "weft";
      progress(fmt::format("{:<8} seed {:<6} {:<12} {:8.1f} Mbit/s, {:3.0f} % of what the fabric carries", fabric.name, seeds[i],
                           is_weft ? "Weft" : "NCCL's IB", one->busbw_mbps, 100 * one->share));
      (is_weft ? comparison.weft : comparison.ib).push_back(one.take());
    }
  }
  return comparison;
}

nlohmann::ordered_json to_json(const std::vector<Comparison>& comparisons, const std::vector<std::uint64_t>& seeds) {
  Json out = {{"taken_on", "the emulated fabric"}, {"comparisons", Json::array()}, {"seeds", seeds}};
  for (const Comparison& one : comparisons) {
    const statistics::Ratio ratio = statistics::paired_ratio(bandwidths(one.weft), bandwidths(one.ib));
    out["comparisons"].push_back({{"fabric", one.fabric.name},
                                  {"op", one.op},
                                  {"bytes", one.bytes},
                                  {"ib", side_json(one.ib)},
                                  {"weft", side_json(one.weft)},
                                  {"ratio", {{"median", ratio.median}, {"mean", ratio.mean}, {"low", ratio.low}, {"high", ratio.high}}}});
  }
  out["environment"] = {{"cores", std::thread::hardware_concurrency()}};
  return out;
}

std::string table(const std::vector<Comparison>& comparisons) {
  std::string out = fmt::format("{:<9} {:<12} {:>10} {:>21} {:>7} {:>14}\n", "fabric", "transport", "bus bw", "range over seeds", "share",
                                "slowest spine");
  for (const Comparison& one : comparisons) {
    for (const bool is_weft : {false, true}) {
      const std::vector<Run>& runs = is_weft ? one.weft : one.ib;
      const statistics::Range bandwidth = statistics::range(bandwidths(runs));
      out += fmt::format("{:<9} {:<12} {:>10.1f} {:>10.1f} - {:>8.1f} {:>6.0f}% {:>13.0f}%\n", is_weft ? "" : one.fabric.name,
                         is_weft ? "Weft" : "NCCL's IB", bandwidth.median, bandwidth.min, bandwidth.max,
                         100 * statistics::median(shares(runs)), 100 * slowest_spine(runs));
    }
    const statistics::Ratio ratio = statistics::paired_ratio(bandwidths(one.weft), bandwidths(one.ib));
    out += fmt::format("{:<9} Weft / NCCL's IB: {:.2f} in the median, 95 % interval {:.2f} to {:.2f}\n", "", ratio.median, ratio.low, ratio.high);
  }
  out += "Bus bandwidth in Mbit/s; share: of what the links carry as payload; slowest spine: bytes of the least used over the mean.\n"
         "Taken on the emulated fabric.\n";
  return out;
}

}  // namespace weft::demo
