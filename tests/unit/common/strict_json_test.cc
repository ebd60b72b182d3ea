#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "common/json/strict.h"

namespace weft::json {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Read {
  explicit Read(const char* text)
      : document(parse(text, "file.json").take()), fields(document, "file.json", problems) {}
  nlohmann::json document;
  Problems problems;
  Fields fields;
};

TEST(StrictJson, ReadsEveryType) {
  Read read(
      R"({"name": "a", "count": 3, "rate": 1.5, "on": true, "list": ["x"], "numbers": [1, 2], "child": {"k": 1}})");
  EXPECT_EQ(read.fields.text("name", required), "a");
  EXPECT_EQ(read.fields.integer("count", required), 3);
  EXPECT_EQ(read.fields.number("rate", required), 1.5);
  EXPECT_TRUE(read.fields.boolean("on", required));
  EXPECT_THAT(read.fields.texts("list"), ElementsAre("x"));
  EXPECT_THAT(read.fields.integers("numbers"), ElementsAre(1, 2));
  EXPECT_EQ(read.fields.object("child")->integer("k", required), 1);
  read.fields.done();
  EXPECT_TRUE(read.problems.empty()) << read.problems.error()->text();
}

TEST(StrictJson, UsesTheDefaultWhereAFieldIsAbsent) {
  Read read("{}");
  EXPECT_EQ(read.fields.integer("count", 4), 4);
  EXPECT_EQ(read.fields.text("name", "x"), "x");
  EXPECT_EQ(read.fields.word("mode", "a", {"a", "b"}), "a");
  EXPECT_TRUE(read.problems.empty());
}

TEST(StrictJson, ReportsEveryProblemWithItsPath) {
  Read read(R"({"count": "three", "mode": "rign", "rate": 900, "hots": 1, "list": [1]})");
  read.fields.text("name", required);
  read.fields.integer("count", 1);
  read.fields.word("mode", "ring", {"ring", "tree"});
  read.fields.number("rate", 1, {.low = 0, .high = 400, .unit = "Gbit/s"});
  read.fields.integer("hosts", 1);
  read.fields.texts("list");
  read.fields.done();
  EXPECT_THAT(read.problems.lines(),
              ElementsAre(HasSubstr("\"name\" is missing"),
                          HasSubstr("file.json.count: is a string (\"three\"); an integer is expected"),
                          HasSubstr("did you mean \"ring\"?"), HasSubstr("allowed: 0 to 400 Gbit/s"),
                          HasSubstr("file.json.list[0]: is an integer"), HasSubstr("did you mean \"hosts\"?")));
}

TEST(StrictJson, RefusesIntegersThatDoNotFit) {
  Read read(R"({"a": 18446744073709551615, "b": 1.0})");
  read.fields.integer("a", 0);
  read.fields.integer("b", 0);
  EXPECT_EQ(read.problems.lines().size(), 2u);
}

TEST(StrictJson, RefusesSomethingElseThanAnObject) {
  Read read("[1]");
  EXPECT_THAT(read.problems.lines(), ElementsAre(HasSubstr("an object { … } is expected")));
}

TEST(StrictJson, SyntaxErrorsNameLineAndColumn) {
  const auto result = parse("{\n  \"a\": 1,\n  \"b\" 2\n}", "file.json");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().text(), HasSubstr("file.json:3:7"));
}

TEST(StrictJson, RefusesDuplicateKeys) {
  const auto result = parse(R"({"a": {"b": 1, "b": 2}})", "file.json");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().text(), HasSubstr("\"b\" stands twice"));
}

TEST(StrictJson, NamesTheFileThatIsMissing) {
  const auto result = read_file("/nonexistent/file.json");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().text(), HasSubstr("/nonexistent/file.json: cannot open: No such file"));
}

}  // namespace
}  // namespace weft::json
