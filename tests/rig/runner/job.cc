#include "tests/rig/runner/job.h"

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/text/format.h"
#include "tests/rig/rank/exchange.h"

namespace weft::rig {
namespace {

constexpr std::chrono::milliseconds kLook{5};
// A rank ends by itself at the time limit and says where it was; the runner's own limit comes after that.
constexpr double kGraceSeconds = 5;

bool is_nic_fault(FaultKind kind) {
  return kind == FaultKind::nic_down || kind == FaultKind::nic_up || kind == FaultKind::nic_loss;
}

}  // namespace

Job::Job(const Scenario& scenario, const RunFolder& folder, fabric::Fabric& fabric)
    : scenario_(scenario),
      folder_(folder),
      fabric_(fabric),
      carried_out_(scenario.faults.size()),
      nics_(std::size_t(scenario.topology.hosts), std::vector<NicState>(std::size_t(scenario.topology.rails))) {
  end_.ranks.resize(std::size_t(scenario.ranks()));
}

std::map<std::string, std::string> Job::environment(int rank) const {
  const std::string build = build_folder(), host = fabric::host_name(scenario_.host_of_rank(rank));
  std::map<std::string, std::string> out = {
      {"LD_LIBRARY_PATH", text::format("{0}/rig/nccl-{1}:{0}/rig/lib:{0}/lib", build, scenario_.nccl)},
      {"RIG_HOST_FILE", folder_.host_file(scenario_.host_of_rank(rank))},
      {"RIG_PROCESS", text::format("rank{}", rank)},
      {"NCCL_HOSTID", host},
      {"NCCL_SOCKET_IFNAME", "rail0"},
      {"NCCL_DEBUG", "INFO"},
      {"NCCL_DEBUG_SUBSYS", "INIT,NET,ENV,TUNING"},
      {"NCCL_TOPO_FILE", folder_.topology_file()},
      // Chosen by 2.29.7 from eight one-GPU hosts on; the emulated CUDA runtime does not carry it out.
      {"NCCL_PAT_ENABLE", "0"},
      {"NCCL_RAS_ENABLE", "0"},
  };
  if (scenario_.net == "weft") {
    out["NCCL_NET_PLUGIN"] = "weft";
    out["NCCL_NET"] = "Weft";
  } else {
    out["NCCL_NET_PLUGIN"] = "none";
    out["NCCL_NET"] = scenario_.net == "ib" ? "IB" : "Socket";
    if (scenario_.net == "socket") out["NCCL_IB_DISABLE"] = "1";
  }
  out["NCCL_TUNER_PLUGIN"] = scenario_.tuner;
  for (const auto& [name, value] : scenario_.environment)
    out[name] = value;
  return out;
}

Result<void> Job::start_ranks() {
  for (int rank = 0; rank < scenario_.ranks(); rank++) {
    Launch launch;
    launch.host = scenario_.host_of_rank(rank);
    launch.arguments = {build_folder() + "/rig/bin/rank", folder_.rank_file(rank)};
    launch.environment = environment(rank);
    launch.log = folder_.log_file(rank);
    auto child = start_process(scenario_, launch);
    if (!child) return child.take_error();
    children_.push_back(*child);
  }
  return {};
}

// The ranks' first barrier opens when all of them have a communicator; its file is the one that they share
// (tests/rig/rank/exchange.h: arrived, generation, failed rank, 32 bits each).
bool Job::operations_have_started() const {
  std::ifstream file(folder_.exchange() + "/barrier", std::ios::binary);
  std::uint32_t words[2] = {0, 0};
  return file.read(reinterpret_cast<char*>(words), sizeof words) && words[1] > 0;
}

// A rank that was killed can't tell the ones that wait for it at a barrier.
void Job::tell_the_others(int rank) const {
  if (auto exchange = rank::Exchange::open(folder_.exchange(), scenario_.ranks())) exchange->fail(rank);
}

bool Job::reap() {
  bool running = false;
  for (std::size_t rank = 0; rank < children_.size(); rank++) {
    if (end_.ranks[rank].code >= 0) continue;
    if (const auto code = exit_status(children_[rank])) {
      end_.ranks[rank].code = *code;
      end_.ranks[rank].after_s = seconds();
      if (*code != 0) tell_the_others(int(rank));
    } else {
      running = true;
    }
  }
  return running;
}

Result<void> Job::carry_out_faults() {
  if (!operations_at_s_ && operations_have_started()) operations_at_s_ = seconds();
  for (std::size_t i = 0; i < scenario_.faults.size(); i++) {
    const Fault& fault = scenario_.faults[i];
    if (carried_out_[i] || (fault.after_start && !operations_at_s_)) continue;
    if (seconds() < fault.at_s + (fault.after_start ? *operations_at_s_ : 0)) continue;
    carried_out_[i] = true;
    if (auto done = carry_out(fault); !done) return done;
  }
  return {};
}

Result<void> Job::carry_out(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::spine_down:
    case FaultKind::spine_up:
      return fabric_.set_spine(fault.target, fault.kind == FaultKind::spine_up);
    case FaultKind::spine_drop:
    case FaultKind::spine_restore:
      return fabric_.set_forwarding(fault.target, fault.kind == FaultKind::spine_restore);
    case FaultKind::kill:
      // A process that has ended already has no number any more.
      if (end_.ranks[std::size_t(fault.target)].code >= 0) return {};
      end_.ranks[std::size_t(fault.target)].killed_by_fault = true;
      kill(children_[std::size_t(fault.target)], SIGKILL);
      return {};
    default:
      break;
  }
  for (int host = 0; host < scenario_.topology.hosts; host++) {
    if (fabric::host_name(host) != fault.host) continue;
    for (int rail = 0; rail < scenario_.topology.rails; rail++) {
      if (scenario_.nic_name(rail) != fault.nic) continue;
      NicState& nic = nics_[std::size_t(host)][std::size_t(rail)];
      if (fault.kind == FaultKind::nic_loss)
        nic.drop_ppm = fault.drop_ppm;
      else
        nic.up = fault.kind == FaultKind::nic_up;
    }
    return folder_.write_control(scenario_, host, nics_[std::size_t(host)]);
  }
  return {};
}

Result<JobEnd> Job::run() {
  start_ = Clock::now();
  // Faults of the NICs that hold from the start are there before the first process looks.
  for (std::size_t i = 0; i < scenario_.faults.size(); i++) {
    const Fault& fault = scenario_.faults[i];
    if (fault.after_start || fault.at_s > 0 || !is_nic_fault(fault.kind)) continue;
    carried_out_[i] = true;
    if (auto done = carry_out(fault); !done) return done.take_error();
  }
  if (auto started = start_ranks(); !started) return started.take_error();
  while (reap()) {
    if (auto done = carry_out_faults(); !done) return done.take_error();
    if (seconds() > scenario_.time_limit_s + kGraceSeconds) {
      end_.out_of_time = true;
      for (std::size_t rank = 0; rank < children_.size(); rank++) {
        if (end_.ranks[rank].code < 0) kill(children_[rank], SIGKILL);
      }
    }
    std::this_thread::sleep_for(kLook);
  }
  for (std::size_t i = 0; i < carried_out_.size(); i++) {
    if (!carried_out_[i]) end_.missed_faults.push_back(i);
  }
  return end_;
}

}  // namespace weft::rig
