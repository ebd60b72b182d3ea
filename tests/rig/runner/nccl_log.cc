#include "tests/rig/runner/nccl_log.h"

#include <sstream>

namespace weft::rig {
namespace {

// What follows `mark` up to the end of the line.
std::string after(const std::string& line, const std::string& mark) {
  const std::size_t at = line.find(mark);
  return at == std::string::npos ? "" : line.substr(at + mark.size());
}

std::string without_version(const std::string& name) {
  return name.substr(0, name.find(" (v"));
}

}  // namespace

LogFindings read_log(const std::string& text) {
  LogFindings found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (const std::string net = after(line, "Using network "); !net.empty()) found.net = net;
    if (const std::string plugin = after(line, "Loaded net plugin "); !plugin.empty()) found.net_plugin = plugin;
    // 2.29: "TUNER/Plugin: Using Weft (v5)", 2.22: "TUNER/Plugin: Using tuner plugin Weft".
    if (const std::string tuner = after(line, "TUNER/Plugin: Using "); !tuner.empty()) {
      const std::string name = after(tuner, "tuner plugin ");
      found.tuner = without_version(name.empty() ? tuner : name);
    }
    if (line.find(" NCCL WARN ") != std::string::npos) found.warnings.push_back(line);
  }
  return found;
}

std::string tail(const std::string& text, int lines) {
  std::size_t start = text.size();
  if (start > 0 && text[start - 1] == '\n') start--;
  while (lines-- > 0 && start != std::string::npos && start > 0)
    start = text.rfind('\n', start - 1);
  return text.substr(start == std::string::npos || start == 0 ? 0 : start + 1);
}

}  // namespace weft::rig
