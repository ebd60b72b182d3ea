#include "common/settings/conf_files.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace weft::settings {
namespace {

constexpr const char* kForAll = "/etc/nccl.conf";

}  // namespace

std::map<std::string, std::string> parse_conf(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equal = line.find('=');
    if (line.empty() || line.front() == '#' || equal == std::string_view::npos || equal == 0) continue;
    values.emplace(line.substr(0, equal), line.substr(equal + 1));
  }
  return values;
}

std::vector<ConfFile> read_conf_files(const std::function<const char*(const char*)>& lookup) {
  std::vector<std::string> paths;
  const char* named = lookup("NCCL_CONF_FILE");
  const char* home = lookup("HOME");
  if (named && *named)
    paths.push_back(named);
  else if (home && *home)
    paths.push_back(std::string(home) + "/.nccl.conf");
  paths.push_back(kForAll);
  std::vector<ConfFile> files;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    if (!file) continue;
    std::ostringstream text;
    text << file.rdbuf();
    files.push_back({path, parse_conf(text.str())});
  }
  return files;
}

}  // namespace weft::settings
