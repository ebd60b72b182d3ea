#include "bench/weft/figures/data_plane.h"

#include <cstdio>

#include "bench/weft/demo/rig_process.h"

namespace weft::figures {
namespace {

struct Subject {
  const char* name;
  const char* scenario;
  double goal;       // of Weft / NCCL's IB default, bandwidth (or the inverse of time); 0: printed only
  bool many_spines;  // the hash seed matters
  double share;      // Weft's goal of what the fabric carries; 0: none
};

// A fabric without spines has no hash: one seed says as much as all.
constexpr Subject kSubjects[] = {
    {"four spines, 4 MiB", "data_plane_spines.json", 1.6, true, 0.95},
    {"one of four spines at a quarter, 4 MiB", "data_plane_slow_spine.json", 0, true, 0.90},
    {"one of four spines 10 ms farther, 4 MiB", "data_plane_far_spine.json", 0, true, 0.90},
    {"one path, 1 MiB", "data_plane_one_path.json", 1.0, false, 0},
    {"8 bytes to and fro, per time", "data_plane_latency.json", 1 / 1.05, false, 0},
    {"64 connections, 256 KiB", "data_plane_connections.json", 1.0, true, 0},
    {"incast 4 to 1, 1 MiB", "data_plane_incast.json", 1.0, false, 0},
};

}  // namespace

Result<std::vector<Point>> measure_data_plane(const std::string& rig, const std::vector<std::uint64_t>& seeds) {
  const auto progress = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  std::vector<Point> points;
  for (const Subject& subject : kSubjects) {
    auto scenario = demo::find_scenario(subject.scenario);
    if (!scenario) return scenario.take_error();
    const std::vector<std::uint64_t> used = subject.many_spines ? seeds : std::vector<std::uint64_t>{seeds.front()};
    auto one = demo::compare({subject.name, scenario.take(), ""}, used, demo::rig_runner(rig), progress);
    if (!one) return one.take_error();
    const std::string name = subject.name;
    const statistics::Estimate ratio = demo::ratio(*one);
    const std::string what = name + ": Weft / NCCL's IB default";
    points.push_back(subject.goal > 0 ? at_least(what, subject.goal, ratio) : printed(what, ratio.median));
    if (subject.share > 0)
      points.push_back(at_least(name + ": Weft's median share", subject.share, demo::weft_share(*one)));
  }
  return points;
}

}  // namespace weft::figures
