#include "tests/rig/runner/standing_fabric.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/text/format.h"

namespace weft::rig {
namespace {

constexpr int kBrokerLimitMs = 10'000;

}  // namespace

std::string build_folder() {
  std::error_code problem;
  return std::filesystem::canonical("/proc/self/exe", problem).parent_path().parent_path().string();
}

Result<std::unique_ptr<StandingFabric>> StandingFabric::create(const Scenario& scenario, const RunFolder& folder) {
  std::unique_ptr<StandingFabric> standing(new StandingFabric());
  auto made = fabric::Fabric::create(scenario.topology, fabric::LinuxHash(scenario.topology.hash_seed));
  if (!made) return made.take_error();
  standing->fabric_ = made.take();
  if (scenario.net == "socket") return standing;
  for (int host = 0; host < scenario.topology.hosts; host++) {
    if (auto started = standing->start_broker(scenario, folder, host); !started) return started.take_error();
  }
  return standing;
}

StandingFabric::~StandingFabric() {
  for (const int input : broker_inputs_)
    close(input);
}

Result<void> StandingFabric::start_broker(const Scenario& scenario, const RunFolder& folder, int host) {
  int input[2] = {-1, -1}, output[2] = {-1, -1};
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) return system_error("pipe failed", errno);
  broker_inputs_.push_back(input[1]);
  Launch launch;
  launch.host = host;
  launch.arguments = {build_folder() + "/rig/bin/soft_rnic_broker", folder.host_file(host)};
  launch.environment["LD_LIBRARY_PATH"] = build_folder() + "/rig/lib";
  launch.log = text::format("{}/{}.broker.log", folder.path(), fabric::host_name(host));
  launch.input = input[0];
  launch.output = output[1];
  auto child = start_process(scenario, launch);
  close(input[0]);
  close(output[1]);
  std::string said(64, '\0');
  pollfd wait{output[0], POLLIN, 0};
  const bool spoke = child && poll(&wait, 1, kBrokerLimitMs) == 1;
  const ssize_t got = spoke ? read(output[0], said.data(), said.size()) : 0;
  close(output[0]);
  if (!child) return child.take_error();
  if (got > 0 && said.rfind("ready", 0) == 0) return {};
  return Error{"the software NIC's broker did not start", launch.log, 0, "the log says why"};
}

}  // namespace weft::rig
