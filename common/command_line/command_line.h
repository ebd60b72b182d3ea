// What every program of the project says to a wrong command line: the word that is wrong, the nearest one that is
// right, and all that are allowed.
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace weft::command_line {

// What is wrong, one fact a line. `app` is the whole program, `error` what its parsing threw.
std::string explain(const CLI::App& app, const CLI::Error& error);

// Nothing: the program goes on. Otherwise it ends with this code: 0 after the help that was asked for, `usage_code`
// after a wrong command line, which has been explained on standard error.
std::optional<int> parse(CLI::App& app, int count, const char* const* arguments, int usage_code);

}  // namespace weft::command_line
