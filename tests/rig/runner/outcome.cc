#include "tests/rig/runner/outcome.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "common/text/format.h"
#include "tests/rig/runner/nccl_log.h"

namespace weft::rig {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kTailLines = 40;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

Json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"p5", spread.p5}, {"p95", spread.p95}};
}

class Judge {
 public:
  Judge(const Scenario& scenario, const RunFolder& folder, const JobEnd& end)
      : scenario_(scenario), folder_(folder), end_(end) {}

  Outcome run(fabric::Fabric& fabric, const std::vector<fabric::SpineTraffic>& before) {
    read_ranks();
    judge_ranks();
    judge_loaded();
    judge_faults();
    Json operations = operations_json();
    Outcome out;
    out.pass = reason_.empty();
    out.reason = reason_;
    out.json = {{"verdict", out.pass ? "pass" : "fail"},
                {"reason", reason_},
                {"scenario", scenario_.name},
                {"nccl", scenario_.nccl},
                {"loaded", {{"net", net_}, {"tuner", tuner_}, {"net_plugin", net_plugin_}}},
                {"operations", std::move(operations)},
                {"fabric", fabric_json(fabric, before)},
                {"flows", flows_json(fabric)},
                {"ranks", ranks_json()},
                {"pat", "switched off by the rig"},
                {"environment", scenario_.environment},
                {"run_folder", folder_.path()}};
    return out;
  }

 private:
  void fail(const std::string& why) {
    if (reason_.empty()) reason_ = why;
  }

  void read_ranks() {
    for (int rank = 0; rank < scenario_.ranks(); rank++) {
      results_.push_back(nlohmann::json::parse(read_text(folder_.result_file(rank)), nullptr, false));
      logs_.push_back(read_text(folder_.log_file(rank)));
      findings_.push_back(read_log(logs_.back()));
    }
  }

  bool has_result(int rank) const { return results_[std::size_t(rank)].is_object(); }

  // Wrong data first, then the error that came first: the others follow from it.
  void judge_ranks() {
    for (int rank = 0; rank < scenario_.ranks(); rank++) {
      if (!has_result(rank)) continue;
      for (const auto& operation : results_[std::size_t(rank)]["operations"]) {
        const auto wrong = operation["wrong"].get<std::uint64_t>();
        if (wrong == 0) continue;
        const std::string what =
            text::format("rank {}: {} wrong elements in {}", rank, wrong, operation["op"].get<std::string>());
        const auto& first = operation["first_wrong"];
        fail(first.is_null() ? what
                             : text::format("{}; the first is {}: {} instead of {}", what, first["index"].dump(),
                                            first["got"].dump(), first["expected"].dump()));
      }
    }
    double first_at = 1e9;
    std::string first;
    for (int rank = 0; rank < scenario_.ranks(); rank++) {
      if (!has_result(rank) || results_[std::size_t(rank)]["error"].is_null()) continue;
      const auto& error = results_[std::size_t(rank)]["error"];
      if (error["after_s"].get<double>() >= first_at) continue;
      first_at = error["after_s"].get<double>();
      first = text::format("rank {}: {}: {} {}", rank, error["call"].get<std::string>(),
                           error["name"].get<std::string>(), error["text"].get<std::string>());
    }
    if (!first.empty()) fail(first);
    if (end_.out_of_time) fail(text::format("not finished within the time limit of {} s", scenario_.time_limit_s));
    for (int rank = 0; rank < scenario_.ranks(); rank++) {
      const RankEnd& end = end_.ranks[std::size_t(rank)];
      if (end.code != 0)
        fail(text::format("rank {} ended with exit status {}{}", rank, end.code,
                          end.killed_by_fault ? " (killed by the scenario)" : ""));
      else if (!has_result(rank))
        fail(text::format("rank {} left no result", rank));
    }
  }

  void judge_faults() {
    for (const std::size_t fault : end_.missed_faults) {
      fail(text::format("faults.{} ({}) never happened: the job ended before its moment", fault,
                        fault_name(scenario_.faults[fault].kind)));
    }
  }

  void judge_loaded() {
    const std::string wanted = scenario_.net == "weft" ? "Weft" : scenario_.net == "ib" ? "IB" : "Socket";
    for (int rank = 0; rank < scenario_.ranks(); rank++) {
      LogFindings& found = findings_[std::size_t(rank)];
      // A rank that drives the transport itself says so; NCCL says nothing then.
      if (has_result(rank)) found.net = results_[std::size_t(rank)].value("net", found.net);
      if (!found.net.empty() && found.net != wanted) {
        fail(text::format("rank {} uses the network {}, the scenario asked for {}", rank, found.net, wanted));
      }
      if (found.net.empty() && reason_.empty())
        fail(text::format("rank {}: NCCL's log does not say which network it uses", rank));
      const std::string version = has_result(rank) ? results_[std::size_t(rank)].value("nccl", "") : "";
      if (!version.empty() && version != scenario_.nccl) {
        fail(text::format("rank {} runs NCCL {}, the scenario asked for {}", rank, version, scenario_.nccl));
      }
      if (net_.empty()) net_ = found.net;
      if (net_plugin_.empty()) net_plugin_ = found.net_plugin;
      if (tuner_.empty()) tuner_ = found.tuner;
    }
    const bool tuned = scenario_.tuner == "weft";
    for (int rank = 0; rank < scenario_.ranks() && reason_.empty(); rank++) {
      if (tuned == (findings_[std::size_t(rank)].tuner == "Weft")) continue;
      fail(text::format("rank {} {}", rank,
                        tuned ? "did not load the tuner" : "loaded a tuner that the scenario did not ask for"));
    }
  }

  Json operations_json() {
    Json out = Json::array();
    share_ = Spread{};
    for (std::size_t index = 0; index < scenario_.operations.size(); index++) {
      const rank::Operation& operation = scenario_.operations[index];
      std::vector<double> times;  // of the slowest rank, by iteration
      std::vector<double> message_times;
      std::uint64_t wrong = 0;
      bool complete = true;
      for (int rank = 0; rank < scenario_.ranks(); rank++) {
        if (!has_result(rank) || results_[std::size_t(rank)]["operations"].size() <= index) {
          complete = false;
          continue;
        }
        const auto& report = results_[std::size_t(rank)]["operations"][index];
        wrong += report["wrong"].get<std::uint64_t>();
        for (const auto& time : report.value("message_us", Json::array()))
          message_times.push_back(time.get<double>());
        const auto mine = report["time_us"].get<std::vector<double>>();
        complete = complete && int(mine.size()) == operation.iterations;
        times.resize(std::max(times.size(), mine.size()));
        for (std::size_t i = 0; i < mine.size(); i++)
          times[i] = std::max(times[i], mine[i]);
      }
      std::vector<double> bandwidths, shares;
      const double possible = possible_bytes_per_second(scenario_);
      for (const double time_us : times) {
        bandwidths.push_back(bus_factor(operation, scenario_.ranks()) * double(operation.bytes) / time_us * 8);
        shares.push_back(bytes_leaving_a_host(scenario_, operation) / (time_us * 1e-6) / possible);
      }
      const Spread share = spread(shares);
      if (share.median > share_.median) share_ = share;
      out.push_back({{"op", rank::kind_name(operation.kind)},
                     {"bytes", operation.bytes},
                     {"type", rank::element_name(operation.element)},
                     {"complete", complete},
                     {"wrong", wrong},
                     {"time_us", spread_json(spread(times))},
                     {"busbw_mbps", spread_json(spread(bandwidths))},
                     {"share", spread_json(share)},
                     {"iterations", {{"time_us", times}, {"busbw_mbps", bandwidths}, {"share", shares}}}});
      if (!message_times.empty()) {
        const Spread message = spread(message_times);
        out.back()["message_us"] = {{"median", message.median}, {"p99", message.p99}};
      }
      if (!complete) fail(text::format("{} was not finished by all ranks", rank::kind_name(operation.kind)));
    }
    return out;
  }

  Json fabric_json(fabric::Fabric& fabric, const std::vector<fabric::SpineTraffic>& before) {
    Json spines = Json::array();
    if (auto after = fabric.traffic()) {
      for (std::size_t i = 0; i < after->size(); i++) {
        spines.push_back({{"name", (*after)[i].name}, {"bytes", (*after)[i].bytes - before[i].bytes}});
      }
    }
    // The operation that used the fabric best.
    return {{"share", share_.median},
            {"possible_mbps", possible_bytes_per_second(scenario_) * 8 / 1e6},
            {"hash_seed", scenario_.topology.hash_seed},
            {"spines", std::move(spines)}};
  }

  // What the software NICs counted by source port, with the spine that the leaf's hash gives it.
  Json flows_json(fabric::Fabric& fabric) {
    struct Sum {
      std::uint64_t bytes = 0, retransmitted = 0;
    };
    std::map<std::tuple<int, std::string, std::string, int>, Sum> sums;  // host, NIC, peer, port
    for (int host = 0; host < scenario_.topology.hosts; host++) {
      std::error_code problem;
      for (const auto& file : std::filesystem::directory_iterator(folder_.statistics_folder(host), problem)) {
        const auto document = nlohmann::json::parse(read_text(file.path()), nullptr, false);
        if (!document.is_object()) continue;
        for (const auto& nic : document["nics"]) {
          for (const auto& port : nic["ports"]) {
            Sum& sum = sums[{host, nic["nic"], port["peer"], port["sport"]}];
            sum.bytes += port["bytes"].get<std::uint64_t>();
            sum.retransmitted += port["retransmitted"].get<std::uint64_t>();
          }
        }
      }
    }
    std::vector<fabric::Flow> flows;
    for (const auto& [key, sum] : sums) {
      const auto& [host, nic, peer, port] = key;
      int rail = 0;
      for (int r = 0; r < scenario_.topology.rails; r++) {
        if (scenario_.nic_name(r) == nic) rail = r;
      }
      flows.push_back({fabric::nic_of(scenario_.topology, host, rail).address, peer, std::uint16_t(port)});
    }
    auto spines = fabric.predict(flows);
    Json out = Json::array();
    std::size_t i = 0;
    for (const auto& [key, sum] : sums) {
      const auto& [host, nic, peer, port] = key;
      out.push_back({{"host", fabric::host_name(host)},
                     {"nic", nic},
                     {"sport", port},
                     {"spine", spines ? (*spines)[i] : ""},
                     {"bytes", sum.bytes},
                     {"peer", peer},
                     {"retransmitted", sum.retransmitted}});
      i++;
    }
    return out;
  }

  Json ranks_json() {
    Json out = Json::array();
    for (int rank = 0; rank < scenario_.ranks(); rank++) {
      const RankEnd& end = end_.ranks[std::size_t(rank)];
      const LogFindings& found = findings_[std::size_t(rank)];
      Json entry = {{"rank", rank},     {"host", fabric::host_name(scenario_.host_of_rank(rank))},
                    {"exit", end.code}, {"after_s", end.after_s},
                    {"net", found.net}, {"error", nullptr}};
      if (has_result(rank)) {
        entry["nccl"] = results_[std::size_t(rank)]["nccl"];
        entry["init_s"] = results_[std::size_t(rank)]["init_s"];
        entry["error"] = results_[std::size_t(rank)]["error"];
      }
      entry["warnings"] = found.warnings;
      if (end.code != 0) entry["log_tail"] = tail(logs_[std::size_t(rank)], kTailLines);
      out.push_back(std::move(entry));
    }
    return out;
  }

  const Scenario& scenario_;
  const RunFolder& folder_;
  const JobEnd& end_;
  std::vector<nlohmann::json> results_;
  std::vector<std::string> logs_;
  std::vector<LogFindings> findings_;
  std::string reason_, net_, tuner_, net_plugin_;
  Spread share_;
};

}  // namespace

Outcome judge(const Scenario& scenario, const RunFolder& folder, const JobEnd& end, fabric::Fabric& fabric,
              const std::vector<fabric::SpineTraffic>& before) {
  return Judge(scenario, folder, end).run(fabric, before);
}

std::string table(const Outcome& outcome) {
  const Json& json = outcome.json;
  std::string out = text::format(
      "{}: {}, NCCL {}, net {}, tuner {} (on the emulated fabric)\n", json["scenario"].get<std::string>(),
      outcome.pass ? "PASS" : "FAIL", json["nccl"].get<std::string>(), json["loaded"]["net"].get<std::string>(),
      json["loaded"]["tuner"].get<std::string>().empty() ? "none" : json["loaded"]["tuner"].get<std::string>());
  if (!outcome.pass) out += "reason: " + outcome.reason + "\n";
  out += text::format("{:<16} {:>12} {:>6} {:>12} {:>16} {:>7}\n", "operation", "bytes", "wrong", "time us",
                      "bus bw Mbit/s", "share");
  for (const auto& operation : json["operations"]) {
    out += text::format("{:<16} {:>12} {:>6} {:>12.0f} {:>16.1f} {:>7.2f}\n", operation["op"].get<std::string>(),
                        operation["bytes"].get<std::uint64_t>(), operation["wrong"].get<std::uint64_t>(),
                        operation["time_us"]["median"].get<double>(), operation["busbw_mbps"]["median"].get<double>(),
                        operation["share"]["median"].get<double>());
  }
  for (const auto& spine : json["fabric"]["spines"]) {
    out += text::format("spine {}: {:.1f} MB\n", spine["name"].get<std::string>(), spine["bytes"].get<double>() / 1e6);
  }
  return out;
}

}  // namespace weft::rig
