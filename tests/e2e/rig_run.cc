#include "tests/e2e/rig_run.h"

#include <filesystem>
#include <sstream>

namespace weft::e2e {
namespace {

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

}  // namespace

RigRun run_rig(const std::string& scenario, const std::vector<std::string>& settings, const std::string& label) {
  const std::string result = testing::TempDir() + "rig_" + std::to_string(getpid()) + label + ".json";
  std::filesystem::remove(result);
  std::string command =
      std::string(RIG_COMMAND) + " run " + RIG_SCENARIOS + "/" + scenario + " --quiet --json " + result;
  for (const std::string& setting : settings)
    command += " --set " + quoted(setting);
  RigRun run;
  const int status = std::system(command.c_str());
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::ifstream file(result);
  std::ostringstream content;
  content << file.rdbuf();
  run.result = nlohmann::json::parse(content.str(), nullptr, false);
  if (!run.result.is_object()) run.result = nlohmann::json::object();
  std::filesystem::remove(result);
  return run;
}

}  // namespace weft::e2e
