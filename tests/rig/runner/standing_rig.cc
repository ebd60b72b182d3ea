#include "tests/rig/runner/standing_rig.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/json/strict.h"
#include "tests/rig/fabric/isolation.h"
#include "tests/rig/runner/emulated_host.h"
#include "tests/rig/runner/job.h"
#include "tests/rig/runner/standing_fabric.h"

namespace weft::rig {
namespace {

std::string record_path(const std::string& name) {
  const char* base = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = base && *base ? base : fmt::format("/tmp/weft-rig-{}", geteuid());
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  return fmt::format("{}/rig-{}.json", folder, name);
}

struct Record {
  int process = 0;
  std::string folder;
  std::string scenario;
  std::vector<std::string> overrides;
};

Result<Record> read_record(const std::string& name) {
  auto document = json::read_file(record_path(name));
  if (!document) return Error{fmt::format("no rig named \"{}\" is up", name), record_path(name), 0, "rig up SCENARIO --name NAME"};
  Record record;
  record.process = (*document)["process"];
  record.folder = (*document)["folder"];
  record.scenario = (*document)["scenario"];
  record.overrides = (*document)["overrides"].get<std::vector<std::string>>();
  if (kill(record.process, 0) != 0) {
    std::filesystem::remove(record_path(name));
    return Error{fmt::format("the rig \"{}\" has ended", name), record_path(name), 0, "rig up SCENARIO --name NAME"};
  }
  return record;
}

// Process 1 of the standing rig: tells when it is ready, then waits to be ended.
int hold(const Scenario& scenario, const RunFolder& folder, int ready) {
  auto standing = StandingFabric::create(scenario, folder);
  const std::string message = standing ? "up" : standing.error().text();
  if (write(ready, message.data(), message.size()) < 0) return 1;
  close(ready);
  if (!standing) return 1;
  while (true) pause();
}

}  // namespace

Result<void> up(const Scenario& scenario, const std::string& scenario_path, const std::vector<std::string>& overrides,
                const std::string& name) {
  if (read_record(name)) return Error{fmt::format("a rig named \"{}\" is up already", name), {}, 0, fmt::format("rig down --name {}", name)};
  auto folder = RunFolder::create();
  if (!folder) return folder.take_error();
  if (auto written = folder->write(scenario); !written) return written;
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return system_error("pipe failed", errno);
  std::fflush(nullptr);
  // The holder must outlive this command: a session of its own, and no tie to this process.
  const pid_t holder = fork();
  if (holder < 0) return system_error("fork failed", errno);
  if (holder == 0) {
    setsid();
    close(ready[0]);
    auto isolated = fabric::start_isolated([&] { return hold(scenario, *folder, ready[1]); });
    if (!isolated) _exit(1);
    std::ofstream(record_path(name)) << nlohmann::json{{"process", *isolated},
                                                       {"folder", folder->path()},
                                                       {"scenario", std::filesystem::absolute(scenario_path)},
                                                       {"overrides", overrides}};
    close(ready[1]);
    waitpid(*isolated, nullptr, 0);
    folder->remove();
    _exit(0);
  }
  close(ready[1]);
  std::string said(4096, '\0');
  const ssize_t got = read(ready[0], said.data(), said.size());
  close(ready[0]);
  said.resize(std::size_t(std::max<ssize_t>(0, got)));
  if (said == "up") return {};
  return Error{said.empty() ? "the fabric could not be set up (see above)" : said, {}, 0, {}};
}

Result<int> execute(const std::string& name, const std::string& host, const std::vector<std::string>& command) {
  auto record = read_record(name);
  if (!record) return record.take_error();
  auto scenario = read_scenario(record->scenario, record->overrides);
  if (!scenario) return scenario.take_error();
  int number = -1;
  for (int i = 0; i < scenario->topology.hosts; i++) {
    if (fabric::host_name(i) == host) number = i;
  }
  if (auto joined = fabric::join_isolated(record->process); !joined) return joined.take_error();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return system_error("fork failed", errno);
  if (child == 0) {
    // Leaves and spines are for looking only: they have no NICs.
    auto entered = number >= 0 ? enter_host(*scenario, number) : fabric::enter_network(host);
    if (!entered) {
      std::fprintf(stderr, "rig: %s\n", entered.error().text().c_str());
      _exit(2);
    }
    const std::string library = build_folder() + "/rig/lib";
    setenv("LD_LIBRARY_PATH", library.c_str(), 1);
    if (number >= 0) setenv("RIG_HOST_FILE", RunFolder(record->folder).host_file(number).c_str(), 1);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    std::fprintf(stderr, "rig: %s: %s\n", words[0], errno_name(errno).c_str());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<void> down(const std::string& name) {
  auto record = read_record(name);
  if (!record) return record.take_error();
  if (kill(record->process, SIGKILL) != 0) return system_error("cannot end the rig's process", errno, std::to_string(record->process));
  std::filesystem::remove(record_path(name));
  return {};
}

}  // namespace weft::rig
