#include "common/result/result.h"

#include <cstring>

namespace weft {

std::string errno_name(int code) {
  if (const char* name = strerrorname_np(code)) return name;
  return "errno " + std::to_string(code);
}

std::string Error::text() const {
  std::string out;
  if (!where.empty()) out += where + ": ";
  out += what;
  if (code != 0) {
    char buffer[128];
    out += ": ";
    out += strerror_r(code, buffer, sizeof buffer);
    out += " (" + errno_name(code) + ")";
  }
  if (!hint.empty()) out += "; " + hint;
  return out;
}

Error system_error(std::string what, int code, std::string where, std::string hint) {
  return Error{std::move(what), std::move(where), code, std::move(hint)};
}

}  // namespace weft
