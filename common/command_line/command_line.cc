#include "common/command_line/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "common/text/format.h"
#include "common/text/nearest.h"

namespace weft::command_line {
namespace {

// The command that was given, of the command that was given, and so on: the one whose words the last ones are.
const CLI::App& innermost(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app : innermost(*given.back());
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// Without those that a program calls itself with: they are in no group.
std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  }
  return names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& allowed) {
  const auto near = text::nearest(word, allowed);
  return near ? text::format(" (did you mean \"{}\"?)", *near) : "";
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-';
}

std::string wrong_words(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<std::string> options = options_of(app), commands = commands_of(app);
  std::string out;
  bool wrong_option = false, wrong_command = false, may_be_its_value = false;
  for (const std::string& word : words) {
    if (is_option(word)) {
      wrong_option = may_be_its_value = true;
      const std::string name = word.substr(0, word.find('='));
      out += text::format("Not an option: \"{}\"{}.\n", word, did_you_mean(name, options));
    } else if (may_be_its_value) {
      may_be_its_value = false;
    } else if (!commands.empty()) {
      wrong_command = true;
      out += text::format("Not a command: \"{}\"{}.\n", word, did_you_mean(word, commands));
      break;  // what follows belongs to it
    } else {
      out += text::format("Not expected: \"{}\".\n", word);
    }
  }
  if (wrong_option) out += text::format("Options: {}\n", text::join(options));
  if (wrong_command) out += text::format("Commands: {}\n", text::join(commands));
  return out;
}

}  // namespace

std::string explain(const CLI::App& app, const CLI::Error& error) {
  const CLI::App& command = innermost(app);
  const std::vector<std::string> commands = commands_of(command);
  // Not the error's name: of this one CLI11 2.1 makes the name of the program.
  const bool extras = error.get_exit_code() == int(CLI::ExitCodes::ExtrasError);
  const bool no_command = error.get_exit_code() == int(CLI::ExitCodes::RequiredError) && !commands.empty();
  // A word that is none is often why another is missing.
  std::string out = wrong_words(command, command.remaining());
  if (out.empty() || (!no_command && !extras)) out += text::format("{}\n", error.what());
  if (no_command && command.remaining().empty()) out += text::format("Commands: {}\n", text::join(commands));
  const std::string name = &command == &app ? app.get_name() : app.get_name() + " " + command.get_name();
  return out + text::format("{} --help says more.\n", name);
}

std::optional<int> parse(CLI::App& app, int count, const char* const* arguments, int usage_code) {
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) { return explain(*failed, error); });
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_code;
  }
  return std::nullopt;
}

}  // namespace weft::command_line
