#include "tests/rig/runner/scenario.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <set>

#include "common/json/strict.h"
#include "common/text/format.h"

namespace weft::rig {
namespace {

using json::Fields;
using json::required;

constexpr const char* kFaults[] = {"spine_down", "spine_up", "spine_drop", "spine_restore",
                                   "nic_down",   "nic_up",   "nic_loss",   "kill"};
const std::vector<std::string> kVersions = {"2.22.3", "2.29.7"};
const std::vector<std::string> kDefects = {"wrong_reduction", "never_retransmit", "corrupt_payload"};
const std::vector<std::string> kGids = {"link_local", "ipv4", "empty"};

int whole(Fields& fields, std::string_view key, int fallback, std::int64_t low, std::int64_t high,
          std::string_view unit = {}) {
  return int(fields.integer(key, fallback, {.low = low, .high = high, .unit = unit}));
}

void read_fabric(Fields fields, fabric::Topology& topology) {
  topology.hosts_per_leaf = whole(fields, "hosts_per_leaf", topology.hosts_per_leaf, 1, 64);
  topology.spines = whole(fields, "spines", topology.spines, 0, 32);
  topology.nic_mbps = whole(fields, "nic_mbps", topology.nic_mbps, 1, 100'000, "Mbit/s");
  topology.spine_mbps = whole(fields, "spine_mbps", topology.spine_mbps, 1, 100'000, "Mbit/s");
  topology.delay_us = whole(fields, "delay_us", topology.delay_us, 0, 1'000'000, "us");
  topology.mtu = whole(fields, "mtu", topology.mtu, 576, 9000, "bytes");
  topology.hash_seed = std::uint32_t(fields.integer("hash_seed", topology.hash_seed, {.low = 1, .high = 0xffffffff}));
  fields.word("hash", "linux", {"linux"});
  for (Fields& entry : fields.objects("unequal_spines")) {
    fabric::UnequalSpine one;
    one.spine = int(entry.integer("spine", required, {.low = 1, .high = std::max(1, topology.spines)})) - 1;
    one.mbps = whole(entry, "mbps", topology.spine_mbps, 1, 100'000, "Mbit/s");
    one.delay_us = whole(entry, "delay_us", topology.delay_us, 0, 1'000'000, "us");
    for (const fabric::UnequalSpine& other : topology.unequal_spines) {
      if (other.spine == one.spine)
        entry.problem("spine", text::format("spine {} is there twice", one.spine + 1), "name each spine once");
    }
    topology.unequal_spines.push_back(one);
    entry.done();
  }
  fields.done();
}

void read_nic(Fields fields, NicModel& nic) {
  nic.name_prefix = fields.text("name_prefix", nic.name_prefix);
  nic.speed_mbps = whole(fields, "speed_mbps", nic.speed_mbps, 0, 800'000, "Mbit/s");
  nic.mtu = whole(fields, "mtu", nic.mtu, 256, 4096, "bytes");
  if ((nic.mtu & (nic.mtu - 1)) != 0)
    fields.problem("mtu", text::format("{} is no RoCE MTU", nic.mtu), "allowed: 256, 512, 1024, 2048, 4096");
  nic.window_bytes = whole(fields, "window_bytes", nic.window_bytes, 4096, 64 << 20, "bytes");
  nic.max_qp = whole(fields, "max_qp", nic.max_qp, 1, 65535);
  nic.max_srq = whole(fields, "max_srq", nic.max_srq, 0, 65535);
  nic.max_inline = whole(fields, "max_inline", nic.max_inline, 0, 4096, "bytes");
  nic.ece = fields.boolean("ece", nic.ece);
  nic.modify_udp_sport = fields.boolean("modify_udp_sport", nic.modify_udp_sport);
  nic.late_gpu_writes = fields.boolean("late_gpu_writes", nic.late_gpu_writes);
  std::vector<std::string> gids = fields.texts("gids");
  for (const std::string& gid : gids) {
    if (std::find(kGids.begin(), kGids.end(), gid) == kGids.end()) {
      fields.problem("gids", text::format("\"{}\" is not known", gid), "allowed: link_local, ipv4, empty");
    }
  }
  if (!gids.empty()) {
    nic.gids.clear();
    for (const std::string& gid : gids)
      nic.gids += (nic.gids.empty() ? "" : ",") + gid;
  }
  fields.done();
}

rank::Operation read_operation(Fields fields, int ranks) {
  rank::Operation operation;
  const std::vector<std::string> kinds = rank::kind_names();
  const std::string kind = fields.word("op", required, kinds);
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found != kinds.end()) operation.kind = rank::Kind(found - kinds.begin());
  operation.bytes =
      std::size_t(fields.integer("bytes", required, {.low = 1, .high = std::int64_t(1) << 34, .unit = "bytes"}));
  operation.element =
      rank::element_from_name(fields.word("type", "f32", rank::element_names())).value_or(rank::Element::f32);
  operation.reduction = rank::reduction_from_name(fields.word("reduction", "sum", rank::reduction_names()))
                            .value_or(rank::Reduction::sum);
  operation.iterations = whole(fields, "iterations", 1, 1, 100'000);
  operation.warmup = whole(fields, "warmup", 0, 0, 100'000);
  operation.in_place = fields.boolean("in_place", false);
  operation.root = whole(fields, "root", 0, 0, ranks - 1);
  operation.connections = whole(fields, "connections", 1, 1, 1024);
  operation.messages = whole(fields, "messages", 1, 1, 1'000'000);
  operation.in_flight = whole(fields, "in_flight", 4, 1, 8);
  fields.done();
  return operation;
}

Fault read_fault(Fields fields, const Scenario& scenario) {
  Fault fault;
  const std::vector<std::string> kinds(std::begin(kFaults), std::end(kFaults));
  const std::string kind = fields.word("fault", required, kinds);
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found != kinds.end()) fault.kind = FaultKind(found - kinds.begin());
  fault.at_s = fields.number("at_s", required, {.low = 0, .high = 86400, .unit = "seconds"});
  fault.after_start = fields.word("after", "operations", {"operations", "job"}) == "operations";
  switch (fault.kind) {
    case FaultKind::spine_down:
    case FaultKind::spine_up:
    case FaultKind::spine_drop:
    case FaultKind::spine_restore:
      fault.target = int(fields.integer("spine", required, {.low = 1, .high = scenario.topology.spines})) - 1;
      break;
    case FaultKind::kill:
      fault.target = int(fields.integer("rank", required, {.low = 0, .high = scenario.ranks() - 1}));
      break;
    default: {
      std::vector<std::string> hosts, names;
      for (int host = 0; host < scenario.topology.hosts; host++)
        hosts.push_back(fabric::host_name(host));
      for (int rail = 0; rail < scenario.topology.rails; rail++)
        names.push_back(scenario.nic_name(rail));
      fault.host = fields.word("host", required, hosts);
      fault.nic = fields.word("nic", required, names);
      if (fault.kind == FaultKind::nic_loss)
        fault.drop_ppm = int(fields.integer("drop_ppm", required, {.low = 0, .high = 1'000'000}));
    }
  }
  fields.done();
  return fault;
}

void read_order(Fields& fields, Scenario& scenario) {
  std::vector<std::int64_t> order = fields.integers("host_order", {.low = 1, .high = scenario.topology.hosts});
  scenario.host_order.resize(std::size_t(scenario.topology.hosts));
  std::iota(scenario.host_order.begin(), scenario.host_order.end(), 0);
  if (order.empty()) return;
  const std::set<std::int64_t> distinct(order.begin(), order.end());
  if (order.size() != scenario.host_order.size() || distinct.size() != order.size()) {
    fields.problem("host_order", "does not name every host once",
                   text::format("allowed: the numbers 1 to {} in any order", scenario.topology.hosts));
    return;
  }
  for (std::size_t i = 0; i < order.size(); i++)
    scenario.host_order[i] = int(order[i]) - 1;
}

// What can only be judged with the whole scenario at hand.
void check(Fields& fields, const Scenario& scenario) {
  const fabric::Topology& topology = scenario.topology;
  if (topology.spines == 0 && topology.hosts > topology.hosts_per_leaf) {
    fields.problem("fabric.spines", "0 with hosts on several leaves",
                   "give it spines, or set fabric.hosts_per_leaf to the number of hosts");
  }
  // Ethernet payload of a full RoCE packet: IP 20, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4.
  constexpr int kHeaders = 64;
  if (scenario.nic.mtu + kHeaders > topology.mtu) {
    fields.problem("nic.mtu", text::format("{} does not fit into fabric.mtu {}", scenario.nic.mtu, topology.mtu),
                   text::format("fabric.mtu must be at least {}", scenario.nic.mtu + kHeaders));
  }
}

Scenario read_document(const nlohmann::json& document, const std::string& name, json::Problems& problems) {
  Fields fields(document, name, problems);
  Scenario scenario;
  scenario.name = fields.text("name", std::filesystem::path(name).stem().string());
  fields.text("description", "");
  fabric::Topology& topology = scenario.topology;
  topology.hosts = int(fields.integer("hosts", required, {.low = 1, .high = 64}));
  topology.rails = whole(fields, "nics_per_host", 1, 1, 8);
  topology.hosts_per_leaf = std::max(1, topology.hosts / 2);
  scenario.gpus_per_host = whole(fields, "gpus_per_host", topology.rails, 1, 8);
  if (auto child = fields.object("fabric")) read_fabric(*child, topology);
  if (auto child = fields.object("nic")) read_nic(*child, scenario.nic);
  if (auto child = fields.object("gpu")) {
    scenario.gpudirect = child->boolean("gpudirect", false);
    scenario.dmabuf = child->boolean("dmabuf", false);
    scenario.compute_capability = child->word("compute_capability", "8.0", {"7.0", "8.0", "9.0", "10.0"});
    child->done();
  }
  scenario.nccl = fields.word("nccl", scenario.nccl, kVersions);
  scenario.net = fields.word("net", scenario.net, {"weft", "ib", "socket"});
  scenario.tuner = fields.word("tuner", scenario.tuner, {"weft", "none"});
  if (auto child = fields.object("environment")) {
    for (const std::string& key : child->keys())
      scenario.environment[key] = child->text(key, required);
  }
  read_order(fields, scenario);
  if (fields.has("unusable_host")) {
    scenario.unusable_host =
        fabric::host_name(int(fields.integer("unusable_host", required, {.low = 1, .high = topology.hosts})) - 1);
  }
  for (Fields& child : fields.objects("operations"))
    scenario.operations.push_back(read_operation(child, scenario.ranks()));
  for (Fields& child : fields.objects("faults"))
    scenario.faults.push_back(read_fault(child, scenario));
  for (const std::string& defect : fields.texts("defects")) {
    if (std::find(kDefects.begin(), kDefects.end(), defect) == kDefects.end()) {
      fields.problem("defects", text::format("\"{}\" is not known", defect),
                     "allowed: wrong_reduction, never_retransmit, corrupt_payload");
    }
    scenario.defects.push_back(defect);
  }
  scenario.time_limit_s = whole(fields, "time_limit_s", scenario.time_limit_s, 1, 3600, "seconds");
  check(fields, scenario);
  fields.done();
  return scenario;
}

std::optional<Error> override_one(nlohmann::json& document, const std::string& text) {
  const std::size_t equal = text.find('=');
  if (equal == 0 || equal == std::string::npos) {
    return Error{text::format("\"{}\" is not path=value", text), "--set", 0, "for example --set fabric.hash_seed=7"};
  }
  const std::string value = text.substr(equal + 1);
  nlohmann::json parsed = nlohmann::json::parse(value, nullptr, false);
  if (parsed.is_discarded()) parsed = value;
  nlohmann::json* place = &document;
  const std::string path = text.substr(0, equal);
  // Environment variables are strings, whatever they look like.
  if (path.rfind("environment.", 0) == 0) parsed = value;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    const std::string key = path.substr(start, dot - start);
    if (place->is_array()) {
      std::size_t index = 0;
      const auto [stopped, problem] = std::from_chars(key.data(), key.data() + key.size(), index);
      if (problem != std::errc() || stopped != key.data() + key.size() || index >= place->size()) {
        return Error{text::format("\"{}\": there is no element \"{}\"", text, key), "--set", 0,
                     place->empty() ? "the list is empty" : text::format("allowed: 0 to {}", place->size() - 1)};
      }
      place = &(*place)[index];
    } else if (place->is_object() || place->is_null()) {
      place = &(*place)[key];
    } else {
      return Error{text::format("\"{}\": \"{}\" lies inside a value that is no object", text, key), "--set", 0, {}};
    }
    start = dot + 1;
  }
  *place = std::move(parsed);
  return std::nullopt;
}

Result<Scenario> finish(nlohmann::json document, const std::string& name, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    if (auto wrong = override_one(document, text)) return *wrong;
  }
  json::Problems problems;
  Scenario scenario = read_document(document, name, problems);
  if (auto error = problems.error()) return *error;
  return scenario;
}

}  // namespace

std::string fault_name(FaultKind kind) {
  return kFaults[std::size_t(kind)];
}

Result<Scenario> read_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  auto document = json::read_file(path);
  if (!document) return document.take_error();
  return finish(document.take(), path, overrides);
}

Result<Scenario> parse_scenario(const std::string& text, const std::string& name,
                                const std::vector<std::string>& overrides) {
  auto document = json::parse(text, name);
  if (!document) return document.take_error();
  return finish(document.take(), name, overrides);
}

}  // namespace weft::rig
