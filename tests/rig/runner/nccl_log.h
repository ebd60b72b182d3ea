// What NCCL's own log says about a run. Pure.
#pragma once

#include <string>
#include <vector>

namespace weft::rig {

struct LogFindings {
  std::string net;                    // "Using network X"
  std::string tuner;                  // "TUNER/Plugin: Using X (vN)", "" where none
  std::string net_plugin;             // "Loaded net plugin X (vN)": "X (vN)"
  std::vector<std::string> warnings;  // lines at WARN
};

LogFindings read_log(const std::string& text);

// The last `lines` lines.
std::string tail(const std::string& text, int lines);

}  // namespace weft::rig
