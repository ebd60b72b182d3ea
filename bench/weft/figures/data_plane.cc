#include "bench/weft/figures/data_plane.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "bench/weft/demo/rig_process.h"
#include "bench/weft/process/child.h"
#include "common/text/format.h"

namespace weft::figures {
namespace {

struct Subject {
  const char* name;
  const char* scenario;
  double goal;       // of Weft / NCCL's IB default, bandwidth (or the inverse of time); 0: printed only
  bool many_spines;  // the hash seed matters: more of them
  double share;      // Weft's goal of what the fabric carries; 0: none
};

// A fabric without spines has no hash: there the seeds are repetitions.
constexpr Subject kSubjects[] = {
    {"four spines, 4 MiB", "data_plane_spines.json", 1.6, true, 0.95},
    {"one of four spines at a quarter, 4 MiB", "data_plane_slow_spine.json", 0, true, 0.90},
    {"one of four spines 10 ms farther, 4 MiB", "data_plane_far_spine.json", 0, true, 0.90},
    {"one path, 1 MiB", "data_plane_one_path.json", 1.0, false, 0},
    {"8 bytes to and fro, per time", "data_plane_latency.json", 1 / 1.05, false, 0},
    {"64 connections, 256 KiB", "data_plane_connections.json", 1.0, true, 0},
    {"incast 4 to 1, 1 MiB", "data_plane_incast.json", 1.0, false, 0},
};

// Hash seeds that a given one stands for: five seeds make ten.
constexpr std::size_t kHashSeedsOfOne = 2;
constexpr const char* kGridScenario = "data_plane_spines.json";
constexpr double kGridGoal = 1.6;
constexpr int kQueuePairs[] = {1, 2, 4, 8, 16};
constexpr double kOnePieceGoal = 0.7, kExtraPieceGoal = 0.5, kFirstBytesGoal = 1.2, kQueuePairsGoal = 2;

void progress(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
}

// Against the best that NCCL's own transport can be set to: the setting with the lowest ratio decides.
Result<void> measure_grid(const std::string& rig, const std::vector<std::uint64_t>& seeds, std::vector<Point>& points) {
  auto scenario = demo::find_scenario(kGridScenario);
  if (!scenario) return scenario.take_error();
  std::string best;
  statistics::Estimate lowest;
  for (const int queue_pairs : kQueuePairs) {
    for (const int split : {0, 1}) {
      const std::string setting = text::format("QPS_PER_CONNECTION={} SPLIT_DATA_ON_QPS={}", queue_pairs, split);
      demo::FabricChoice choice{setting, *scenario, ""};
      choice.settings = {text::format("environment.NCCL_IB_QPS_PER_CONNECTION={}", queue_pairs),
                         text::format("environment.NCCL_IB_SPLIT_DATA_ON_QPS={}", split)};
      auto one = demo::compare(choice, seeds, demo::rig_runner(rig), progress);
      if (!one) return one.take_error();
      const statistics::Estimate ratio = demo::ratio(*one);
      points.push_back(printed("four spines, 4 MiB: share of NCCL's IB, " + setting, demo::ib_share(*one).median));
      if (best.empty() || ratio.median < lowest.median) {
        best = setting;
        lowest = ratio;
      }
    }
  }
  points.push_back(at_least("four spines, 4 MiB: Weft / NCCL's IB at its best, " + best, kGridGoal, lowest));
  return {};
}

// What a message costs the CPU: counted instructions, so that there is nothing to repeat (bench/net_compare).
Result<void> count_instructions(const std::string& rig, std::vector<Point>& points) {
  const std::string program = (std::filesystem::path(rig).parent_path() / "net_compare").string();
  auto folder = process::TemporaryFolder::create();
  if (!folder) return folder.take_error();
  const std::string file = folder->path() + "/net_compare.json";
  progress("instructions of a message, NIC that is none");
  auto ended = process::run({program, "--json", file});
  if (!ended) return ended.take_error();
  if (ended->code != 0) return Error{"failed: " + ended->output, program, 0, {}};
  std::ifstream stream(file);
  const nlohmann::json json = nlohmann::json::parse(stream, nullptr, false);
  if (!json.contains("figures")) return Error{"gave no figures", program, 0, {}};
  const nlohmann::json& figures = json["figures"];
  const auto ratio = [&](const char* key) { return figures[key].value("ratio", 0.0); };
  points.push_back(at_most("instructions of a message of 4 KiB: Weft / NCCL's IB", kOnePieceGoal, ratio("one_piece")));
  points.push_back(
      at_most("instructions of each further piece: Weft / NCCL's IB", kExtraPieceGoal, ratio("extra_piece")));
  points.push_back(at_most("time to the first bytes of 1,024 ranks' all-to-all: Weft / NCCL's IB", kFirstBytesGoal,
                           ratio("first_bytes_seconds")));
  points.push_back(at_most("queue pairs in that all-to-all: Weft / NCCL's IB", kQueuePairsGoal, ratio("queue_pairs")));
  points.push_back(printed("instructions of a test in vain: Weft / NCCL's IB", ratio("tests_in_vain")));
  for (const char* side : {"weft", "ib"}) {
    const std::string name = side == std::string("weft") ? "Weft" : "NCCL's IB";
    points.push_back(printed("seconds to set up 256 connections, " + name, figures["set_up_seconds"].value(side, 0.0)));
    points.push_back(
        printed("KiB that a connection holds, both ends, " + name, figures["kilobytes_each"].value(side, 0.0)));
  }
  return {};
}

}  // namespace

Result<std::vector<Point>> measure_data_plane(const std::string& rig, const std::vector<std::uint64_t>& seeds,
                                              bool grid) {
  const std::vector<std::uint64_t> many = hash_seeds(seeds, kHashSeedsOfOne);
  std::vector<Point> points;
  if (auto counted = count_instructions(rig, points); !counted) return counted.take_error();
  for (const Subject& subject : kSubjects) {
    auto scenario = demo::find_scenario(subject.scenario);
    if (!scenario) return scenario.take_error();
    auto one = demo::compare({subject.name, scenario.take(), ""}, subject.many_spines ? many : seeds,
                             demo::rig_runner(rig), progress);
    if (!one) return one.take_error();
    const std::string name = subject.name;
    const statistics::Estimate ratio = demo::ratio(*one);
    const std::string what = name + ": Weft / NCCL's IB default";
    points.push_back(subject.goal > 0 ? at_least(what, subject.goal, ratio) : printed(what, ratio.median));
    if (subject.share > 0)
      points.push_back(at_least(name + ": Weft's median share", subject.share, demo::weft_share(*one)));
  }
  if (grid) {
    if (auto measured = measure_grid(rig, many, points); !measured) return measured.take_error();
  }
  return points;
}

}  // namespace weft::figures
