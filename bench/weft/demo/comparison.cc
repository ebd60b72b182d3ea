#include "bench/weft/demo/comparison.h"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "common/text/format.h"

namespace weft::demo {
namespace {

using Json = nlohmann::ordered_json;

// Throws nlohmann's exception where a field is missing: caught by the only caller.
Run read_run(const nlohmann::json& json, std::uint64_t seed) {
  const nlohmann::json& operation = json.at("operations").at(0);
  Run out;
  out.seed = seed;
  out.busbw_mbps = operation.at("busbw_mbps").at("median");
  out.share = operation.at("share").at("median");
  operation.at("iterations").at("busbw_mbps").get_to(out.iteration_mbps);
  operation.at("iterations").at("share").get_to(out.iteration_shares);
  for (const nlohmann::json& spine : json.at("fabric").at("spines"))
    out.spine_bytes[spine.at("name")] = spine.at("bytes");
  return out;
}

Result<Run> run_side(const FabricChoice& fabric, std::uint64_t seed, const char* net, const RunScenario& run,
                     Comparison& comparison) {
  std::vector<std::string> settings = {text::format("net={}", net), text::format("fabric.hash_seed={}", seed)};
  settings.insert(settings.end(), fabric.settings.begin(), fabric.settings.end());
  auto result = run(fabric.scenario, settings);
  if (!result) return result.take_error();
  const nlohmann::json& json = *result;
  if (json.value("verdict", "") != "pass") {
    return Error{
        text::format("the run with {} and hash seed {} failed: {}", net, seed, json.value("reason", "no reason given")),
        fabric.scenario,
        0,
        {}};
  }
  try {
    comparison.op = json.at("operations").at(0).at("op");
    comparison.bytes = json.at("operations").at(0).at("bytes");
    return read_run(json, seed);
  } catch (const nlohmann::json::exception& problem) {
    return Error{text::format("not a result of rig run: {}", problem.what()), fabric.scenario, 0,
                 "rig and weft have to come from the same build"};
  }
}

Json range_json(const statistics::Summary& range) {
  return {{"median", range.median}, {"min", range.min}, {"max", range.max}};
}

Json side_json(const std::vector<Run>& runs) {
  Json out = {{"busbw_mbps", range_json(statistics::summary(bandwidths(runs)))},
              {"share", range_json(statistics::summary(shares(runs)))}};
  out["runs"] = Json::array();
  for (const Run& run : runs) {
    out["runs"].push_back(
        {{"seed", run.seed}, {"busbw_mbps", run.busbw_mbps}, {"share", run.share}, {"spine_bytes", run.spine_bytes}});
  }
  return out;
}

double slowest_spine(const std::vector<Run>& runs) {
  std::vector<double> values;
  for (const Run& run : runs)
    values.push_back(run.least_used_spine());
  return statistics::median(values);
}

std::vector<statistics::Pair> pairs_of(const Comparison& comparison) {
  std::vector<statistics::Pair> pairs;
  for (std::size_t i = 0; i < comparison.weft.size(); i++) {
    pairs.push_back({comparison.ib[i].iteration_mbps, comparison.weft[i].iteration_mbps});
  }
  return pairs;
}

std::vector<std::vector<double>> iteration_shares(const std::vector<Run>& runs) {
  std::vector<std::vector<double>> shares;
  for (const Run& run : runs)
    shares.push_back(run.iteration_shares);
  return shares;
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

statistics::Estimate ratio(const Comparison& comparison) {
  return statistics::paired_ratio(pairs_of(comparison));
}

statistics::Estimate mean_ratio(const Comparison& comparison) {
  return statistics::mean_paired_ratio(pairs_of(comparison));
}

statistics::Estimate weft_share(const Comparison& comparison) {
  return statistics::median_over(iteration_shares(comparison.weft));
}

statistics::Estimate ib_share(const Comparison& comparison) {
  return statistics::median_over(iteration_shares(comparison.ib));
}

std::vector<double> bandwidths(const std::vector<Run>& runs) {
  std::vector<double> out;
  for (const Run& run : runs)
    out.push_back(run.busbw_mbps);
  return out;
}

std::vector<double> shares(const std::vector<Run>& runs) {
  std::vector<double> out;
  for (const Run& run : runs)
    out.push_back(run.share);
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
      progress(text::format("{:<8} seed {:<6} {:<12} {:8.1f} Mbit/s, {:3.0f} % of what the fabric carries", fabric.name,
                            seeds[i], is_weft ? "Weft" : "NCCL's IB", one->busbw_mbps, 100 * one->share));
      (is_weft ? comparison.weft : comparison.ib).push_back(one.take());
    }
  }
  return comparison;
}

nlohmann::ordered_json to_json(const std::vector<Comparison>& comparisons, const std::vector<std::uint64_t>& seeds) {
  Json out = {{"taken_on", "the emulated fabric"}, {"comparisons", Json::array()}, {"seeds", seeds}};
  for (const Comparison& one : comparisons) {
    const statistics::Estimate known = ratio(one);
    out["comparisons"].push_back({{"fabric", one.fabric.name},
                                  {"op", one.op},
                                  {"bytes", one.bytes},
                                  {"ib", side_json(one.ib)},
                                  {"weft", side_json(one.weft)},
                                  {"ratio", {{"median", known.median}, {"low", known.low}, {"high", known.high}}}});
  }
  utsname system{};
  uname(&system);
  out["environment"] = {
      {"fabric", "emulated"}, {"cores", std::thread::hardware_concurrency()}, {"kernel", system.release}};
  return out;
}

std::string table(const std::vector<Comparison>& comparisons) {
  std::string out = text::format("{:<9} {:<12} {:>10} {:>21} {:>7} {:>14}\n", "fabric", "transport", "bus bw",
                                 "range over seeds", "share", "slowest spine");
  for (const Comparison& one : comparisons) {
    for (const bool is_weft : {false, true}) {
      const std::vector<Run>& runs = is_weft ? one.weft : one.ib;
      const statistics::Summary bandwidth = statistics::summary(bandwidths(runs));
      out +=
          text::format("{:<9} {:<12} {:>10.1f} {:>10.1f} - {:>8.1f} {:>6.0f}% {:>13.0f}%\n",
                       is_weft ? "" : one.fabric.name, is_weft ? "Weft" : "NCCL's IB", bandwidth.median, bandwidth.min,
                       bandwidth.max, 100 * statistics::median(shares(runs)), 100 * slowest_spine(runs));
    }
    const statistics::Estimate known = ratio(one);
    out += text::format("{:<9} Weft / NCCL's IB: {:.2f} in the median, 95 % interval {:.2f} to {:.2f}\n", "",
                        known.median, known.low, known.high);
  }
  out +=
      "Bus bandwidth in Mbit/s; share: of what the links carry as payload; slowest spine: bytes of the least used over "
      "the mean.\n"
      "Taken on the emulated fabric.\n";
  return out;
}

}  // namespace weft::demo
