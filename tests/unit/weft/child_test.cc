#include "bench/weft/process/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

namespace weft::process {
namespace {

TEST(Child, GivesOutputAndExitStatus) {
  auto ended = run({"sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->code, 3);
  EXPECT_EQ(ended->output, "out\nerr\n");
  EXPECT_FALSE(ended->interrupted);
}

TEST(Child, ASignalIsAnExitStatusAbove128) {
  auto ended = run({"sh", "-c", "kill -INT $$"});
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->code, 128 + SIGINT);
  EXPECT_TRUE(ended->interrupted);
}

TEST(Child, AProgramThatDoesNotExistEndsWith127) {
  EXPECT_EQ(run({"/no/such/program"})->code, 127);
}

TEST(Child, OnlyTheEndOfALongOutputIsKept) {
  auto ended = run({"sh", "-c",
                    "i=0; while [ $i -lt 5000 ]; do echo 'a line of this length, more or less, again and again'; "
                    "i=$((i+1)); done; echo last"});
  ASSERT_TRUE(ended.ok());
  EXPECT_LT(ended->output.size(), 200'000u);
  EXPECT_THAT(ended->output, testing::EndsWith("last\n"));
}

TEST(Child, ABackgroundProgramEndsWithItsObject) {
  const auto start = std::chrono::steady_clock::now();
  { auto child = Background::start({"sleep", "60"}); }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(TemporaryFolder, GoesWithTheObject) {
  std::string path;
  {
    auto folder = TemporaryFolder::create();
    ASSERT_TRUE(folder.ok());
    path = folder->path();
    std::ofstream(path + "/file") << "x";
    EXPECT_TRUE(std::filesystem::exists(path + "/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace weft::process
