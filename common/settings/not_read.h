// NCCL's variables for its own IB and Socket transports that Weft does not read, and why: for docs/settings.md and for
// a line in the log where a site sets one.
#pragma once

#include <string>
#include <vector>

namespace weft::settings {

struct NotRead {
  const char* name;
  const char* verdict;  // "not needed", "refused", "NCCL's own"
  const char* why;
};

const std::vector<NotRead>& not_read();

// One line for each of them that is set to something that Weft does otherwise.
std::vector<std::string> remarks_about_not_read(const std::vector<std::string>& environment);

}  // namespace weft::settings
