#include "bench/weft/demo/rig_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/json/strict.h"
#include "common/text/format.h"

namespace weft::demo {
namespace {

// Removed with the object.
class TemporaryFile {
 public:
  TemporaryFile() : path_("/tmp/weft-demo-XXXXXX"), file_(mkstemp(path_.data())) {}
  ~TemporaryFile() {
    if (file_ >= 0) close(file_);
    unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_;
};

// Exit status, 128 + N for signal N. stdout is thrown away: the result comes in a file.
Result<int> start_and_wait(std::vector<std::string> arguments) {
  std::vector<char*> words;
  for (std::string& argument : arguments)
    words.push_back(argument.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return system_error("fork failed", errno, arguments[0]);
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), 1);
    execv(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return system_error("waitpid failed", errno, arguments[0]);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string own_folder() {
  std::error_code problem;
  return std::filesystem::canonical("/proc/self/exe", problem).parent_path().string();
}

Result<std::string> find_scenario(const std::string& name) {
  for (const std::string& folder : {own_folder() + "/../share/weft/scenarios", std::string(WEFT_SCENARIOS)}) {
    const std::string path = folder + "/" + name;
    if (std::filesystem::exists(path)) return path;
  }
  return Error{"the scenario is missing", name, ENOENT,
               text::format("looked in share/weft/scenarios and {}", WEFT_SCENARIOS)};
}

RunScenario rig_runner(const std::string& rig) {
  return [rig](const std::string& scenario, const std::vector<std::string>& settings) -> Result<nlohmann::json> {
    const TemporaryFile result;
    std::vector<std::string> arguments = {rig, "run", scenario, "--quiet", "--json", result.path()};
    for (const std::string& setting : settings)
      arguments.insert(arguments.end(), {"--set", setting});
    auto code = start_and_wait(arguments);
    if (!code) return code.take_error();
    if (*code == 127) return Error{"cannot be started", rig, ENOENT, "build it: cmake --build build --target rig"};
    // 0 and 1 are verdicts; what else went wrong rig has said on stderr.
    if (*code != 0 && *code != 1)
      return Error{text::format("exit status {}", *code), rig, *code == 3 ? ENOENT : 0, "its message stands above"};
    return json::read_file(result.path());
  };
}

}  // namespace weft::demo
