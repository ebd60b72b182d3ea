// The rig command: runs scenarios on an emulated fabric. Exit codes: 0 pass (or done), 1 fail, 2 wrong usage or
// scenario, 3 the machine lacks something.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "common/command_line/command_line.h"
#include "common/text/format.h"
#include "tests/rig/fabric/isolation.h"
#include "tests/rig/runner/outcome.h"
#include "tests/rig/runner/standing_rig.h"

namespace weft::rig {
namespace {

constexpr int kFail = 1, kUsage = 2, kLacking = 3;

struct Options {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string json;
  bool keep = false;
  bool quiet = false;
  std::string name = "default";
  std::string host;
  std::vector<std::string> command;
};

int complain(const Error& error, int code) {
  std::fprintf(stderr, "rig: %s\n", error.text().c_str());
  return code;
}

void progress(const Options& options, const std::string& text) {
  if (!options.quiet) std::fprintf(stderr, "rig: %s\n", text.c_str());
}

// What a run needs from the build; a missing file is named with the way to get it.
std::optional<Error> missing_part(const Scenario& scenario) {
  const std::string build = build_folder();
  const std::string nccl = text::format("{}/rig/nccl-{}/libnccl.so.2", build, scenario.nccl);
  if (!std::filesystem::exists(nccl)) {
    return Error{"stock NCCL is not there", nccl, 0, "run tests/rig/stock_nccl/fetch, then configure and build again"};
  }
  for (const char* part : {"rig/bin/rank", "rig/bin/soft_rnic_broker"}) {
    if (!std::filesystem::exists(build + "/" + part))
      return Error{"is not built", build + "/" + part, 0, "cmake --build build"};
  }
  return std::nullopt;
}

// Inside the isolated process. Unless the run's files are to be kept, they go with it, however it ends.
int run_inside(const Options& options, const Scenario& scenario) {
  auto created = RunFolder::create(options.keep ? RunFolder::kept_base() : RunFolder::kPrivateBase);
  if (!created) return complain(created.error(), kLacking);
  const RunFolder folder = created.take();
  if (options.keep) progress(options, "logs and results stay in " + folder.path());
  if (auto written = folder.write(scenario); !written) return complain(written.error(), kLacking);
  auto standing = StandingFabric::create(scenario, folder);
  if (!standing) return complain(standing.error(), kLacking);
  progress(options, text::format("{} hosts, {} spines up; starting {} ranks", scenario.topology.hosts,
                                 scenario.topology.spines, scenario.ranks()));
  fabric::Fabric& fabric = (*standing)->fabric();
  auto before = fabric.traffic();
  if (!before) return complain(before.error(), kLacking);
  auto end = Job(scenario, folder, fabric).run();
  if (!end) return complain(end.error(), kLacking);
  const Outcome outcome = judge(scenario, folder, *end, fabric, *before);
  if (!options.json.empty() && options.json != "-") {
    std::ofstream file(options.json);
    file << outcome.json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
    file.close();
    if (!file) return complain(system_error("cannot write", errno, options.json), kUsage);
  }
  if (options.json == "-")
    std::puts(outcome.json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  else
    std::fputs(table(outcome).c_str(), stdout);
  return outcome.pass ? 0 : kFail;
}

volatile sig_atomic_t isolated_process = 0;

void end_isolated_process(int) {
  kill(pid_t(isolated_process), SIGKILL);
}

// Ctrl-C and SIGTERM end the isolated process, and with it all that it made.
Result<int> run_interruptible(const std::function<int()>& work) {
  auto child = fabric::start_isolated(work);
  if (!child) return child;
  isolated_process = *child;
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP})
    signal(signal_number, end_isolated_process);
  return fabric::await_isolated(*child);
}

int run(const Options& options) {
  auto scenario = read_scenario(options.scenario, options.overrides);
  if (!scenario) return complain(scenario.error(), kUsage);
  if (scenario->operations.empty())
    return complain(Error{"no operations to run", options.scenario, 0, "give it \"operations\""}, kUsage);
  if (auto missing = missing_part(*scenario)) return complain(*missing, kLacking);
  // Before the run, not after it.
  if (!options.json.empty() && options.json != "-" && !std::ofstream(options.json, std::ios::app)) {
    return complain(system_error("cannot write", errno, options.json), kUsage);
  }
  auto code = run_interruptible([&] { return run_inside(options, *scenario); });
  if (!code) return complain(code.error(), kLacking);
  return *code;
}

int check(const Options& options) {
  auto scenario = read_scenario(options.scenario, options.overrides);
  if (!scenario) return complain(scenario.error(), kUsage);
  std::fputs(text::format("{}: {} hosts x {} GPUs, {} NICs a host, {} spines, {} operations, {} faults\n",
                          scenario->name, scenario->topology.hosts, scenario->gpus_per_host, scenario->topology.rails,
                          scenario->topology.spines, scenario->operations.size(), scenario->faults.size())
                 .c_str(),
             stdout);
  return 0;
}

int stand(const Options& options) {
  auto scenario = read_scenario(options.scenario, options.overrides);
  if (!scenario) return complain(scenario.error(), kUsage);
  if (auto done = up(*scenario, options.scenario, options.overrides, options.name); !done)
    return complain(done.error(), kLacking);
  std::fputs(text::format("up. A shell on a host: rig exec --name {} h1 -- bash; end it: rig down --name {}\n",
                          options.name, options.name)
                 .c_str(),
             stdout);
  return 0;
}

int main_with(int count, char** arguments) {
  CLI::App app{
      "Runs stock NCCL on an emulated RoCE fabric: hosts, leaves and spines as network namespaces, software NICs, no "
      "GPU.\n"
      "Exit codes: 0 pass or done, 1 fail, 2 wrong usage or scenario, 3 the machine lacks something.",
      "rig"};
  app.require_subcommand(1);
  Options options;
  const auto add_scenario = [&](CLI::App* command) {
    command->add_option("scenario", options.scenario, "Scenario file (tests/rig/README.md describes it)")->required();
    command
        ->add_option("--set", options.overrides,
                     "Replace a value of the scenario, for example fabric.hash_seed=7; may be repeated")
        ->allow_extra_args(false);
  };
  CLI::App* run_command =
      app.add_subcommand("run", "Run a scenario: fabric up, ranks, faults, verdict, all gone again");
  add_scenario(run_command);
  run_command->add_option("--json", options.json, "Write the result for programs to this file (- is standard output)");
  run_command->add_flag("--keep", options.keep, "Leave logs and results of the ranks where they are and say where");
  run_command->add_flag("--quiet", options.quiet, "No progress lines");
  CLI::App* check_command = app.add_subcommand("check", "Read a scenario and report every mistake in it");
  add_scenario(check_command);
  CLI::App* up_command = app.add_subcommand("up", "Set the fabric of a scenario up and leave it standing");
  add_scenario(up_command);
  up_command->add_option("--name", options.name, "Name of the standing rig");
  CLI::App* exec_command =
      app.add_subcommand("exec", "Run a command on a host (h1 …), leaf (l1 …) or spine (s1 …) of a standing rig");
  exec_command->add_option("--name", options.name, "Name of the standing rig");
  exec_command->add_option("host", options.host, "h1, h2, …")->required();
  exec_command->add_option("command", options.command, "Command and arguments, after --")->required();
  CLI::App* down_command = app.add_subcommand("down", "End a standing rig");
  down_command->add_option("--name", options.name, "Name of the standing rig");
  if (const auto code = command_line::parse(app, count, arguments, kUsage)) return *code;
  if (run_command->parsed()) return run(options);
  if (check_command->parsed()) return check(options);
  if (up_command->parsed()) return stand(options);
  if (exec_command->parsed()) {
    auto code = execute(options.name, options.host, options.command);
    return code ? *code : complain(code.error(), kUsage);
  }
  auto ended = down(options.name);
  return ended ? 0 : complain(ended.error(), kUsage);
}

}  // namespace
}  // namespace weft::rig

int main(int count, char** arguments) {
  return weft::rig::main_with(count, arguments);
}
