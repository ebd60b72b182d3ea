#include "tests/rig/runner/standing_rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/text/format.h"
#include "tests/rig/fabric/isolation.h"
#include "tests/rig/runner/emulated_host.h"
#include "tests/rig/runner/job.h"
#include "tests/rig/runner/record.h"
#include "tests/rig/runner/standing_fabric.h"

namespace weft::rig {
namespace {

constexpr const char* kPrivateFolder = "/run/weft-rig";
constexpr std::string_view kUp = "\nup\n";

// Whoever started `rig up` may wait for the end of its output: the processes that stay must not hold it open. What they
// have to say until the rig stands goes to `ready`.
void leave_the_terminal(int ready) {
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(ready, STDERR_FILENO);
  close(nothing);
}

// All that comes through `ready` until the rig stands or its processes have gone.
std::string listen_until_up(int ready) {
  std::string said;
  char part[4096];
  while (said.find(kUp) == std::string::npos) {
    const ssize_t got = read(ready, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said.append(part, std::size_t(got));
  }
  return said;
}

// Process 1 of the standing rig: tells when it is ready, then waits to be ended.
int hold(const Scenario& scenario, int ready) {
  const RunFolder folder(kPrivateFolder);
  std::string message(kUp);
  std::unique_ptr<StandingFabric> standing;
  if (auto written = folder.write(scenario); !written) {
    message = written.error().text();
  } else if (auto made = StandingFabric::create(scenario, folder); !made) {
    message = made.error().text();
  } else {
    standing = made.take();
  }
  if (write(ready, message.data(), message.size()) < 0) return 1;
  close(ready);
  if (!standing) return 1;
  while (true)
    pause();
}

}  // namespace

Result<void> up(const Scenario& scenario, const std::string& scenario_path, const std::vector<std::string>& overrides,
                const std::string& name) {
  auto place = record_place(name);
  if (!place) return place.take_error();
  if (auto record = read_record(*place)) {
    return Error{
        text::format("a rig named \"{}\" is up already", name), {}, 0, text::format("rig down --name {}", name)};
  } else if (record.error().code != ENOENT) {
    return record.take_error();
  }
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return system_error("pipe failed", errno);
  std::fflush(nullptr);
  // The holder must outlive this command: a session of its own, and no tie to this process.
  const pid_t holder = fork();
  if (holder < 0) return system_error("fork failed", errno);
  if (holder == 0) {
    setsid();
    leave_the_terminal(ready[1]);
    close(ready[0]);
    auto isolated = fabric::start_isolated([&] { return hold(scenario, ready[1]); });
    if (!isolated) _exit(1);
    if (auto written = write_record(*place, {*isolated, {}, std::filesystem::absolute(scenario_path), overrides});
        !written) {
      kill(*isolated, SIGKILL);
      const std::string message = written.error().text();
      _exit(write(ready[1], message.data(), message.size()) < 0);
    }
    close(ready[1]);
    waitpid(*isolated, nullptr, 0);
    _exit(0);
  }
  close(ready[1]);
  const std::string said = listen_until_up(ready[0]);
  close(ready[0]);
  if (said.find(kUp) != std::string::npos) return {};
  return Error{"the fabric could not be set up: " + said.substr(0, said.find_last_not_of('\n') + 1), {}, 0, {}};
}

Result<int> execute(const std::string& name, const std::string& host, const std::vector<std::string>& command) {
  auto record = find_record(name);
  if (!record) return record.take_error();
  auto scenario = read_scenario(record->scenario, record->overrides);
  if (!scenario) return scenario.take_error();
  int number = -1;
  for (int i = 0; i < scenario->topology.hosts; i++) {
    if (fabric::host_name(i) == host) number = i;
  }
  std::error_code no_folder;
  const std::filesystem::path here = std::filesystem::current_path(no_folder);
  if (auto joined = fabric::join_isolated(record->process); !joined) return joined.take_error();
  // Another mount namespace begins at its root.
  std::filesystem::current_path(here, no_folder);
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
    if (number >= 0) setenv("RIG_HOST_FILE", RunFolder(kPrivateFolder).host_file(number).c_str(), 1);
    std::vector<char*> words;
    for (const std::string& word : command)
      words.push_back(const_cast<char*>(word.c_str()));
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
  auto record = find_record(name);
  if (!record) return record.take_error();
  if (kill(record->process, SIGKILL) != 0)
    return system_error("cannot end the rig's process", errno, std::to_string(record->process));
  return remove_record(name);
}

}  // namespace weft::rig
