// NCCL's configuration files. NCCL reads them when it starts and puts what they say into its environment, where a
// variable is not set already; a plugin then can't tell the two apart without looking into the files itself.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft::settings {

struct ConfFile {
  std::string path;
  std::map<std::string, std::string> values;
};

// As NCCL reads them: one NAME=VALUE a line, lines that begin with # left out; of two lines for one name the first
// counts.
std::map<std::string, std::string> parse_conf(std::string_view text);

// Those that are there, in the order in which NCCL looks: the one that NCCL_CONF_FILE names or else ~/.nccl.conf, then
// /etc/nccl.conf.
std::vector<ConfFile> read_conf_files(const std::function<const char*(const char*)>& lookup);

}  // namespace weft::settings
