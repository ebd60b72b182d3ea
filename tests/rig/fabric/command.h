// Runs other programs: `ip` and `tc` for the most part.
#pragma once

#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::fabric {

struct Output {
  int code = 0;      // exit status; 128 + signal
  std::string text;  // stdout and stderr
};

// Starts a program found on PATH (or in /usr/sbin, /sbin), gives it `input` and waits. An error only where it can't be
// started.
Result<Output> run_command(const std::vector<std::string>& arguments, const std::string& input = {});

// The same, and an exit status other than 0 is an error that quotes the output.
Result<std::string> must_run(const std::vector<std::string>& arguments, const std::string& input = {});

}  // namespace weft::fabric
