// The archive on the file system: whole or not there.
#include "bench/weft/save_tree/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "bench/weft/process/child.h"
#include "tests/unit/weft/save_tree/unpacked.h"

namespace weft::save_tree {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class SavedTar : public testing::Test {
 protected:
  const process::TemporaryFolder owner_ = process::TemporaryFolder::create().take();
  const std::string& folder_ = owner_.path();
  const Entries entries_ = {
      {"sys", {}}, {"sys/a", {Entry::Kind::file, "first line\n"}}, {"sys/b", {Entry::Kind::link, "a"}}, {"sys/c", {}}};
};

TEST_F(SavedTar, HoldsWhatItWasGiven) {
  const std::string file = folder_ + "/tree.tar";
  ASSERT_TRUE(write_tar(entries_, file));
  const Unpacked unpacked(file);
  EXPECT_EQ(unpacked.trouble(), "");
  EXPECT_THAT(unpacked.members(), testing::ElementsAre("sys/", "sys/a", "sys/b", "sys/c/"));
  std::string line;
  std::getline(std::ifstream(unpacked.root() + "/sys/b") >> std::ws, line);
  EXPECT_EQ(line, "first line");
  EXPECT_TRUE(fs::is_directory(unpacked.root() + "/sys/c"));
}

TEST_F(SavedTar, WhatIsThereStays) {
  const std::string file = folder_ + "/tree.tar";
  std::ofstream(file) << "precious";
  const auto written = write_tar(entries_, file);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, EEXIST);
  EXPECT_THAT(written.error().text(), AllOf(HasSubstr(file), HasSubstr("EEXIST"), HasSubstr("name another file")));
  EXPECT_EQ(fs::file_size(file), 8u);
}

TEST_F(SavedTar, WhereNoFileCanBeItIsSaid) {
  const auto written = write_tar(entries_, folder_ + "/missing/tree.tar");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().text(), AllOf(HasSubstr("missing/tree.tar"), HasSubstr("ENOENT")));
}

// A limit stands for a full file system: the kernel stops the same write, with another errno.
TEST_F(SavedTar, NoPartOfOneIsLeft) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t limit : {rlim_t(0), rlim_t(1000)}) {
    const rlimit low{limit, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
    const auto written = write_tar(entries_, folder_ + "/tree.tar");
    setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().text(), AllOf(HasSubstr("removed again"), HasSubstr("EFBIG")));
    EXPECT_TRUE(fs::is_empty(folder_));
  }
  signal(SIGXFSZ, handler);
}

// The built command, with the files of this tree; of this host where it is empty. Under the address sanitizer without
// the search for leaks: rdma-core's libraries leave 80 bytes behind when they are unloaded.
process::Ended weft(std::vector<std::string> words, const std::string& tree = {}) {
  words.insert(words.begin(), {"env", "ASAN_OPTIONS=detect_leaks=0", "WEFT_SYSFS_ROOT=" + tree, WEFT_FILE});
  return process::run(words).take();
}

TEST_F(SavedTar, TheCommandMakesOne) {
  const std::string file = folder_ + "/tree.tar";
  const process::Ended said = weft({"devices", "--save-tree", file});
  EXPECT_EQ(said.code, 0) << said.output;
  EXPECT_THAT(said.output, HasSubstr("saved: " + file));
  const process::Ended here = weft({"devices", "--json", "-"});
  const process::Ended saving = weft({"devices", "--json", "-", "--save-tree", folder_ + "/other.tar"});
  EXPECT_EQ(saving.code, 0);
  EXPECT_THAT(saving.output, HasSubstr(here.output)) << "the choice is printed as ever";
  const Unpacked unpacked(file);
  EXPECT_EQ(weft({"devices"}, unpacked.root()).code, here.code);
  std::ofstream(unpacked.root() + "/weft/verbs.json") << "{";
  const process::Ended damaged = weft({"devices"}, unpacked.root());
  EXPECT_EQ(damaged.code, 2);
  EXPECT_THAT(damaged.output, HasSubstr("weft/verbs.json"));
}

TEST_F(SavedTar, WrongCommandLines) {
  const process::Ended missing = weft({"devices", "--save-tree"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.output, HasSubstr("--save-tree"));
  const process::Ended mistyped = weft({"devices", "--save-tre", "x.tar"});
  EXPECT_EQ(mistyped.code, 2);
  EXPECT_THAT(mistyped.output, HasSubstr("did you mean \"--save-tree\"?"));
  EXPECT_EQ(weft({"devices", "--save-tree", ""}).code, 2);
  const process::Ended folder = weft({"devices", "--save-tree", folder_});
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.output, HasSubstr("EEXIST"));
  EXPECT_EQ(weft({"devices", "--save-tree", folder_ + "/missing/tree.tar"}).code, 2);
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_THAT(weft({"devices", "--help"}).output, HasSubstr("--save-tree"));
}

}  // namespace
}  // namespace weft::save_tree
