#include "bench/weft/figures/foundation.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "bench/weft/demo/demo_command.h"
#include "bench/weft/demo/rig_process.h"

namespace weft::figures {
namespace {

using statistics::Range;
using statistics::Ratio;

constexpr double kShareGoal = 0.90, kFatRatioGoal = 2.0, kOneToOneGoal = 1.3;

std::string line(const Point& point) {
  return fmt::format("{:<64} goal {:<8} measured {:6.2f}  [{:.2f}, {:.2f}]  {}\n", point.what, point.goal, point.measured, point.low, point.high,
                     point.verdict);
}

nlohmann::ordered_json to_json(const std::vector<Point>& points) {
  nlohmann::ordered_json out = {{"list", "foundation"}, {"taken_on", "the emulated fabric"}, {"points", nlohmann::ordered_json::array()}};
  for (const Point& point : points) {
    out["points"].push_back({{"what", point.what}, {"goal", point.goal}, {"measured", point.measured}, {"interval", {point.low, point.high}}, {"verdict", point.verdict}});
  }
  return out;
}

}  // namespace

Point at_least(const std::string& what, double goal, const std::vector<double>& values) {
  const Range range = statistics::range(values);
  return {what, fmt::format(">= {}", goal), range.median, range.min, range.max, range.median >= goal ? "pass" : "falls short"};
}

Point ratio_at_least(const std::string& what, double goal, const std::vector<double>& numerator, const std::vector<double>& denominator) {
  const Ratio ratio = statistics::paired_ratio(numerator, denominator);
  const char* verdict = !ratio.resolved() ? "not resolved" : ratio.low >= goal ? "pass" : "falls short";
  return {what, fmt::format(">= {}", goal), ratio.median, ratio.low, ratio.high, verdict};
}

void add_figures(CLI::App& app, FigureOptions& options) {
  app.add_option("list", options.list, "Which list of points: foundation")->required();
  options.seeds = demo::kDefaultSeeds;
  app.add_option("--seeds", options.seeds, "Hash seeds of the fabric")->capture_default_str();
  app.add_option("--json", options.json, "Write the points for programs to this file (- is standard output)");
  app.add_option("--rig", options.rig, "The rig command (default: next to this one)");
}

int run_figures(const FigureOptions& options) {
  if (options.list != "foundation") {
    return demo::complain(Error{fmt::format("the list \"{}\" is not known", options.list), "figures", 0, "allowed: foundation"}, demo::kUsage);
  }
  auto seeds = demo::parse_seeds(options.seeds);
  if (!seeds) return demo::complain(seeds.error(), demo::kUsage);
  auto choices = demo::fabrics();
  if (!choices) return demo::complain(choices.error(), demo::kLacking);
  const std::string rig = options.rig.empty() ? demo::own_folder() + "/rig" : options.rig;
  std::vector<Point> points;
  for (const demo::FabricChoice& fabric : *choices) {
    auto one = demo::compare(fabric, *seeds, demo::rig_runner(rig), [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); });
    if (!one) return demo::complain(one.error(), one.error().code == ENOENT ? demo::kLacking : demo::kFailed);
    const std::vector<double> weft = demo::bandwidths(one->weft), ib = demo::bandwidths(one->ib);
    if (fabric.name == "1:1") {
      points.push_back(ratio_at_least("1:1 fabric: Weft / NCCL's IB default", kOneToOneGoal, weft, ib));
    } else {
      points.push_back(at_least("fat NIC, all-reduce: Weft's median share", kShareGoal, demo::shares(one->weft)));
      points.push_back(ratio_at_least("fat NIC, all-reduce: Weft / NCCL's IB default", kFatRatioGoal, weft, ib));
    }
  }
  bool all = true;
  for (const Point& point : points) {
    if (options.json != "-") std::fputs(line(point).c_str(), stdout);
    all = all && point.passes();
  }
  if (options.json != "-") std::puts("Taken on the emulated fabric.");
  const std::string text = to_json(points).dump(1) + "\n";
  if (options.json == "-") std::fputs(text.c_str(), stdout);
  else if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << text;
    file.close();
    if (!file) return demo::complain(system_error("cannot write", errno, options.json), demo::kUsage);
  }
  return all ? demo::kDone : demo::kFailed;
}

}  // namespace weft::figures
