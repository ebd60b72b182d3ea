#define FMT_HEADER_ONLY 1
#include "common/text/format.h"

#include <fmt/format.h>

namespace weft::text {

std::string format_arguments(fmt::string_view form, fmt::format_args arguments) {
  return fmt::vformat(form, arguments);
}

}  // namespace weft::text
