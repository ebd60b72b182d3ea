// What a program says to a wrong command line.
#include "common/command_line/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace weft::command_line {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kUsage = 2;

struct Said {
  std::optional<int> code;
  std::string text;  // on standard error
};

// A program with two commands: "run FILE [--json FILE] [--quiet]" and "check".
Said say(std::vector<const char*> arguments) {
  CLI::App app{"A program.", "program"};
  app.require_subcommand(1);
  std::string file, json;
  bool quiet = false, hidden = false;
  CLI::App* run = app.add_subcommand("run", "Runs");
  run->add_option("file", file)->required();
  run->add_option("--json", json);
  run->add_flag("--quiet", quiet);
  run->add_flag("--hidden", hidden)->group("");
  app.add_subcommand("check", "Checks");
  arguments.insert(arguments.begin(), "program");
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  Said said;
  said.code = parse(app, int(arguments.size()), arguments.data(), kUsage);
  testing::internal::GetCapturedStdout();
  said.text = testing::internal::GetCapturedStderr();
  return said;
}

TEST(CommandLine, OneThatIsRightGoesOn) {
  const Said said = say({"run", "a.json", "--quiet"});
  EXPECT_EQ(said.code, std::nullopt);
  EXPECT_EQ(said.text, "");
}

TEST(CommandLine, HelpIsNoMistake) {
  EXPECT_EQ(say({"--help"}).code, 0);
  EXPECT_EQ(say({"run", "--help"}).code, 0);
}

TEST(CommandLine, WithoutACommandTheCommandsAreNamed) {
  const Said said = say({});
  EXPECT_EQ(said.code, kUsage);
  EXPECT_THAT(said.text, AllOf(HasSubstr("Commands: run, check"), HasSubstr("program --help")));
}

TEST(CommandLine, AWrongCommandIsNamedWithTheNearest) {
  const Said said = say({"rnu", "a.json", "--quiet"});
  EXPECT_EQ(said.code, kUsage);
  EXPECT_THAT(said.text, AllOf(HasSubstr("Not a command: \"rnu\" (did you mean \"run\"?)"),
                               HasSubstr("Commands: run, check"), Not(HasSubstr("a.json"))));
}

TEST(CommandLine, AWrongOptionIsNamedWithTheNearestAndThoseOfItsCommand) {
  for (const char* word : {"--jsn", "--jsn=x"}) {
    const Said said = say({"run", "a.json", word});
    EXPECT_EQ(said.code, kUsage);
    EXPECT_THAT(said.text, AllOf(HasSubstr(std::string("Not an option: \"") + word + "\" (did you mean \"--json\"?)"),
                                 HasSubstr("Options: --help, --json, --quiet\n"), HasSubstr("program run --help"),
                                 Not(HasSubstr("expected"))));
  }
}

TEST(CommandLine, AWrongOptionIsNamedThoughSomethingIsMissingToo) {
  const Said said = say({"run", "--quite"});
  EXPECT_EQ(said.code, kUsage);
  EXPECT_THAT(said.text, AllOf(HasSubstr("\"--quite\" (did you mean \"--quiet\"?)"), HasSubstr("file is required")));
}

TEST(CommandLine, AWordTooManyIsNamed) {
  const Said said = say({"run", "a.json", "b.json"});
  EXPECT_EQ(said.code, kUsage);
  EXPECT_THAT(said.text, HasSubstr("Not expected: \"b.json\""));
}

TEST(CommandLine, WhatFollowsAWrongOptionMayBeItsValue) {
  EXPECT_THAT(say({"run", "a.json", "--jsn", "b.json"}).text, Not(HasSubstr("b.json")));
  EXPECT_THAT(say({"run", "a.json", "--jsn", "b.json", "c.json"}).text, HasSubstr("Not expected: \"c.json\""));
}

TEST(CommandLine, AnOptionWithoutItsValueIsNamed) {
  const Said said = say({"run", "a.json", "--json"});
  EXPECT_EQ(said.code, kUsage);
  EXPECT_THAT(said.text, HasSubstr("--json"));
}

}  // namespace
}  // namespace weft::command_line
