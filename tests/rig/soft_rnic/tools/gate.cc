// soft_rnic_gate server|client --exchange FOLDER: the calibration gate. Measures on one link, in turn, what one queue
// pair carries and what eight do, and prints {"one_mbps":…, "eight_mbps":…, "ratio":…} (medians) at the client. All
// queue pairs have the same source port, so that all take the same way. A ratio below the threshold means that the
// emulated NIC itself favours many queue pairs (a window too small for the link), and that figures taken on this link
// are void. Exit codes: 0 passed, 1 below the threshold or a transfer failed, 2 wrong usage, 3 no device or no peer.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/command_line/command_line.h"
#include "tests/rig/soft_rnic/tools/goodput.h"

namespace weft::soft_rnic {
namespace {

constexpr std::size_t kMany = 8;
constexpr std::chrono::milliseconds kPeerLimit{20000};

struct Options {
  std::string role;
  std::string folder;
  EndpointOptions endpoint;
  std::size_t rounds = 3;
  double seconds = 0.7;
  double threshold = 0.95;
};

int fail(int code, const Error& error) {
  std::fprintf(stderr, "soft_rnic_gate: %s\n", error.text().c_str());
  return code;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int measure(Endpoint& endpoint, const Options& options) {
  GoodputPlan plan;
  plan.duration = std::chrono::milliseconds(static_cast<int>(options.seconds * 1000));
  std::vector<double> one;
  std::vector<double> many;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    for (const std::size_t queue_pairs : {std::size_t{1}, kMany}) {
      plan.queue_pairs = queue_pairs;
      auto mbps = measure_goodput_mbps(endpoint, plan);
      if (!mbps) return fail(1, mbps.error());
      (queue_pairs == 1 ? one : many).push_back(*mbps);
    }
  }
  const double ratio = median(one) / median(many);
  const nlohmann::ordered_json result = {{"one_mbps", median(one)}, {"eight_mbps", median(many)}, {"ratio", ratio}};
  std::puts(result.dump().c_str());
  return ratio >= options.threshold ? 0 : 1;
}

int run(const Options& options) {
  const bool client = options.role == "client";
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return fail(3, endpoint.error());
  auto peer = exchange(options.folder, "gate." + options.role, client ? "gate.server" : "gate.client",
                       endpoint->address(), kPeerLimit);
  if (!peer) return fail(3, peer.error());
  if (auto connected = endpoint->connect(*peer); !connected) return fail(3, connected.error());
  // Both are connected before anything is sent.
  const std::string ready = "gate.ready.";
  if (auto said = announce(options.folder, ready + options.role); !said) return fail(3, said.error());
  if (auto heard = await(options.folder, ready + (client ? "server" : "client"), kPeerLimit); !heard) {
    return fail(3, heard.error());
  }
  if (!client) {
    const auto limit = std::chrono::milliseconds(static_cast<int>(options.rounds * 60000));
    auto done = await(options.folder, "gate.done", limit);
    return done ? 0 : fail(3, done.error());
  }
  const int code = measure(*endpoint, options);
  if (auto said = announce(options.folder, "gate.done"); !said) return fail(3, said.error());
  return code;
}

}  // namespace
}  // namespace weft::soft_rnic

int main(int count, char** arguments) {
  weft::soft_rnic::Options options;
  options.endpoint.queue_pairs = weft::soft_rnic::kMany;
  options.endpoint.flow_label = 1;
  CLI::App app("Calibration gate of the software NIC: one queue pair against eight on the same link.");
  app.add_option("role", options.role, "which end this is")->required()->check(CLI::IsMember({"server", "client"}));
  app.add_option("--exchange", options.folder, "folder that both ends see; empty at the start")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--device", options.endpoint.device, "device name (default: the first)");
  app.add_option("--gid-index", options.endpoint.gid_index, "index of the IPv4 GID")->check(CLI::Range(0, 255));
  app.add_option("--flow-label", options.endpoint.flow_label, "fixes the source port, hence the way")
      ->check(CLI::Range(1, 0xfffff));
  app.add_option("--rounds", options.rounds, "measurements of each")->check(CLI::Range(1, 99));
  app.add_option("--seconds", options.seconds, "length of a measurement")->check(CLI::Range(0.1, 30.0));
  app.add_option("--threshold", options.threshold, "the ratio that passes")->check(CLI::Range(0.0, 1.0));
  if (const auto code = weft::command_line::parse(app, count, arguments, 2)) return *code;
  return weft::soft_rnic::run(options);
}
