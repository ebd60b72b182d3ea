#include "tests/rig/runner/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "tests/rig/runner/emulated_host.h"

namespace weft::rig {
namespace {

[[noreturn]] void become(const Scenario& scenario, const Launch& launch) {
  const int log = open(launch.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(launch.input >= 0 ? launch.input : nothing, 0);
  dup2(log, 2);
  dup2(launch.output >= 0 ? launch.output : log, 1);
  closefrom(3);
  if (auto entered = enter_host(scenario, launch.host); !entered) {
    std::fprintf(stderr, "rig: %s\n", entered.error().text().c_str());
    _exit(126);
  }
  for (const auto& [name, value] : launch.environment)
    setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& argument : launch.arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  std::fprintf(stderr, "rig: %s: %s\n", words[0], errno_name(errno).c_str());
  _exit(127);
}

}  // namespace

Result<pid_t> start_process(const Scenario& scenario, const Launch& launch) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return system_error("fork failed", errno, launch.arguments[0]);
  if (child == 0) become(scenario, launch);
  return child;
}

std::optional<int> exit_status(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, WNOHANG) != child) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace weft::rig
