// {fmt} behind one function, so that its formatting code is compiled once (format.cc) and not in every file that puts a
// sentence together. Debian has no static library of it, and the plugins may need no other shared one.
#pragma once

#include <fmt/core.h>

#include <string>

namespace weft::text {

std::string format_arguments(fmt::string_view form, fmt::format_args arguments);

// As fmt::format: the form is checked when it is compiled, unless it comes as fmt::runtime(…). Numbers and strings
// only.
template <class... Values>
std::string format(fmt::format_string<Values...> form, Values&&... values) {
  return format_arguments(form, fmt::make_format_args(values...));
}

}  // namespace weft::text
