#include "bench/weft/figures/foundation.h"

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "bench/weft/demo/demo_command.h"
#include "bench/weft/demo/rig_process.h"
#include "bench/weft/figures/calibration.h"
#include "bench/weft/figures/data_plane.h"
#include "common/text/format.h"

namespace weft::figures {
namespace {

using statistics::Estimate;

// More than in the demo, which has to end in minutes: they make the intervals narrow.
constexpr int kIterations = 7, kIterationsOfMany = 3;
// On the fat NIC NCCL's own transport has two flows each way on four spines: whether they meet is luck, and it gets a
// half or a quarter. So each seed stands for so many hash seeds there, and the mean counts,
// because a median would say no more than which of the two came more often.
constexpr std::size_t kHashSeedsOfOne = 5;
constexpr std::uint64_t kHashSeedStep = 1000, kLargestSeed = 0xffffffff;
constexpr double kShareGoal = 0.90, kFatRatioGoal = 2.0, kOneToOneGoal = 1.3, kGateGoal = 0.95;

std::string line(const Point& point) {
  return text::format("{:<64} goal {:<8} measured {:6.2f}  [{:.2f}, {:.2f}]  {}\n", point.what, point.goal,
                      point.measured, point.low, point.high, point.verdict);
}

nlohmann::ordered_json to_json(const std::string& list, const std::vector<Point>& points) {
  nlohmann::ordered_json out = {
      {"list", list}, {"taken_on", "the emulated fabric"}, {"points", nlohmann::ordered_json::array()}};
  for (const Point& point : points) {
    out["points"].push_back({{"what", point.what},
                             {"goal", point.goal},
                             {"measured", point.measured},
                             {"interval", {point.low, point.high}},
                             {"verdict", point.verdict}});
  }
  return out;
}

// What has to hold before the demo's figures mean anything: the NIC does not favour many queue pairs on these links.
// Says whether the fabric passes.
Result<bool> add_calibration(const std::string& rig, const demo::FabricChoice& fabric, std::vector<Point>& points) {
  // The first hosts of two leaves.
  const std::string far_host = fabric.name == "1:1" ? "h5" : "h2";
  auto gate = calibration_gate(rig, fabric.scenario, "h1", far_host);
  if (!gate) return gate.take_error();
  points.push_back(at_least(fabric.name + ": one queue pair of the software NIC / eight", kGateGoal, gate->ratio));
  return points.back().passes();
}

Result<void> add_ceiling(const std::string& rig, std::vector<Point>& points) {
  auto known = ceiling(rig);
  if (!known) return known.take_error();
  points.push_back(printed("software NIC's ceiling on this machine, GB/s", known->gigabytes_per_second));
  points.push_back(printed("software NIC, one way of 8 bytes, us", known->one_way_us));
  return {};
}

void add_comparison(const demo::Comparison& one, std::vector<Point>& points) {
  if (one.fabric.name == "1:1") {
    points.push_back(at_least("1:1, all-reduce: Weft / NCCL's IB default", kOneToOneGoal, demo::ratio(one)));
    points.push_back(printed("1:1, all-reduce: Weft's median share", demo::weft_share(one).median));
    return;
  }
  points.push_back(at_least("fat NIC, all-reduce: Weft's median share", kShareGoal, demo::weft_share(one)));
  points.push_back(
      at_least("fat NIC, all-reduce: Weft / NCCL's IB default (geometric mean)", kFatRatioGoal, demo::mean_ratio(one)));
  points.push_back(printed("fat NIC, all-reduce: the same, median", demo::ratio(one).median));
}

Result<std::vector<Point>> measure(const std::string& rig, const std::vector<demo::FabricChoice>& fabrics,
                                   const std::vector<std::uint64_t>& seeds) {
  const auto progress = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  std::vector<Point> points;
  progress("the software NIC: calibration gate on both fabrics, ceiling");
  std::vector<bool> calibrated;
  for (const demo::FabricChoice& fabric : fabrics) {
    auto passes = add_calibration(rig, fabric, points);
    if (!passes) return passes.take_error();
    calibrated.push_back(*passes);
  }
  if (auto done = add_ceiling(rig, points); !done) return done.take_error();
  for (std::size_t i = 0; i < fabrics.size(); i++) {
    demo::FabricChoice fabric = fabrics[i];
    const bool lucky = fabric.name != "1:1";
    fabric.settings.push_back(text::format("operations.0.iterations={}", lucky ? kIterationsOfMany : kIterations));
    auto one =
        demo::compare(fabric, lucky ? hash_seeds(seeds, kHashSeedsOfOne) : seeds, demo::rig_runner(rig), progress);
    if (!one) return one.take_error();
    const std::size_t before = points.size();
    add_comparison(*one, points);
    if (calibrated[i]) continue;
    // A NIC that favours many queue pairs would say nothing about the transports.
    for (std::size_t point = before; point < points.size(); point++)
      points[point].verdict = "void";
  }
  return points;
}

}  // namespace

Point at_least(const std::string& what, double goal, const Estimate& figure) {
  const char* verdict = !figure.resolved() ? "not resolved" : figure.low >= goal ? "pass" : "falls short";
  return {what, text::format(">= {:.2f}", goal), figure.median, figure.low, figure.high, verdict};
}

Point at_least(const std::string& what, double goal, double measured) {
  return {what,     text::format(">= {:.2f}", goal),          measured, measured,
          measured, measured >= goal ? "pass" : "falls short"};
}

std::vector<std::uint64_t> hash_seeds(const std::vector<std::uint64_t>& seeds, std::size_t each) {
  std::vector<std::uint64_t> out;
  for (const std::uint64_t seed : seeds) {
    for (std::size_t i = 0; i < each; i++)
      out.push_back((seed - 1 + i * kHashSeedStep) % kLargestSeed + 1);
  }
  return out;
}

Point at_most(const std::string& what, double goal, double measured) {
  return {what,     text::format("<= {:.2f}", goal),          measured, measured,
          measured, measured <= goal ? "pass" : "falls short"};
}

Point printed(const std::string& what, double measured) {
  return {what, "-", measured, measured, measured, "printed only"};
}

int run_figures(const FigureOptions& options) {
  if (options.list != "foundation" && options.list != "data-plane") {
    return demo::complain(Error{text::format("the list \"{}\" is not known", options.list), "figures", 0,
                                "allowed: foundation, data-plane"},
                          demo::kUsage);
  }
  auto seeds = demo::parse_seeds(options.seeds);
  if (!seeds) return demo::complain(seeds.error(), demo::kUsage);
  auto choices = demo::fabrics();
  if (!choices) return demo::complain(choices.error(), demo::kLacking);
  const std::string rig = options.rig.empty() ? demo::own_folder() + "/rig" : options.rig;
  auto points =
      options.list == "foundation" ? measure(rig, *choices, *seeds) : measure_data_plane(rig, *seeds, options.thorough);
  if (!points) return demo::complain(points.error(), points.error().code == ENOENT ? demo::kLacking : demo::kFailed);
  bool all = true;
  for (const Point& point : *points) {
    if (options.json != "-") std::fputs(line(point).c_str(), stdout);
    all = all && point.passes();
  }
  if (options.json != "-") std::puts("Taken on the emulated fabric.");
  const std::string text = to_json(options.list, *points).dump(1) + "\n";
  if (options.json == "-")
    std::fputs(text.c_str(), stdout);
  else if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << text;
    file.close();
    if (!file) return demo::complain(system_error("cannot write", errno, options.json), demo::kUsage);
  }
  return all ? demo::kDone : demo::kFailed;
}

}  // namespace weft::figures
