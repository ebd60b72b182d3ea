#include "common/settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "common/settings/not_read.h"

namespace weft::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Loaded load_from(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> names;
  for (const auto& [name, value] : variables)
    names.push_back(name);
  return load(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      names);
}

TEST(Settings, NothingSetGivesTheDefaults) {
  const Loaded loaded = load_from({});
  EXPECT_THAT(loaded.errors, IsEmpty());
  EXPECT_THAT(loaded.given, IsEmpty());
  EXPECT_EQ(loaded.settings.paths, 24);
  EXPECT_EQ(loaded.settings.ib_gid_index, -1);
}

TEST(Settings, EveryRowTakesItsOwnDefault) {
  for (const Row& row : table()) {
    if (row.standard.empty()) continue;
    Settings settings;
    EXPECT_TRUE(row.set(settings, row.standard).ok()) << row.name;
    EXPECT_EQ(row.get(settings), row.standard) << row.name;
  }
}

TEST(Settings, ValuesAreReadWhole) {
  for (const char* wrong : {"8x", "", "0x10", "1.5", "--3", "99999999999999999999"}) {
    Settings settings;
    for (const Row& row : table()) {
      if (row.name != "WEFT_PATHS") continue;
      EXPECT_FALSE(row.set(settings, wrong).ok()) << wrong;
    }
  }
}

TEST(Settings, AWrongValueNamesVariableValueAndRange) {
  const Loaded loaded = load_from({{"NCCL_IB_RETRY_CNT", "10"}, {"WEFT_PATHS", "8"}});
  ASSERT_EQ(loaded.errors.size(), 1u);
  EXPECT_EQ(loaded.errors[0].text(), "NCCL_IB_RETRY_CNT=10: is out of range; allowed: 0 to 7; default 7");
  EXPECT_EQ(loaded.settings.ib_retry_cnt, 7);
  EXPECT_EQ(loaded.settings.paths, 8);
}

// Just outside either end of every range, and just inside.
TEST(Settings, RangesAreInclusive) {
  struct Case {
    const char* name;
    std::int64_t low, high;
  };
  for (const Case& one : {Case{"NCCL_IB_GID_INDEX", -1, 65535},
                          {"NCCL_IB_TIMEOUT", 1, 31},
                          {"NCCL_IB_TC", -1, 255},
                          {"NCCL_IB_SL", -1, 15},
                          {"WEFT_PATHS", 1, 128},
                          {"WEFT_CONNECT_TIMEOUT_MS", 100, 600000}}) {
    for (const auto& [value, allowed] :
         std::map<std::int64_t, bool>{{one.low - 1, false}, {one.low, true}, {one.high, true}, {one.high + 1, false}}) {
      EXPECT_EQ(load_from({{one.name, std::to_string(value)}}).errors.empty(), allowed) << one.name << "=" << value;
    }
  }
}

TEST(Settings, PiecesAreMultiplesOf128) {
  EXPECT_TRUE(load_from({{"WEFT_PIECE_BYTES", "65536"}}).errors.empty());
  EXPECT_TRUE(load_from({{"WEFT_PIECE_BYTES", "0"}}).errors.empty());
  EXPECT_FALSE(load_from({{"WEFT_PIECE_BYTES", "65537"}}).errors.empty());
  EXPECT_FALSE(load_from({{"WEFT_PIECE_BYTES", "128"}}).errors.empty());
}

TEST(Settings, AnUnknownVariableIsAWarningWithTheNearestName) {
  const Loaded loaded = load_from({{"WEFT_PATH", "8"}, {"NCCL_IB_FOO", "1"}, {"WEFT_NCCL_DEBS", "/x"}, {"HOME", "/"}});
  EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("WEFT_PATH is not a setting of Weft")));
  EXPECT_THAT(loaded.warnings[0], HasSubstr("did you mean WEFT_PATHS?"));
}

TEST(Settings, AnEmptyVariableCountsAsNotSet) {
  EXPECT_TRUE(load_from({{"WEFT_PATHS", ""}}).given.empty());
}

TEST(Settings, EachThatIsSetSaysWhereItComesFromAndWhatItCountsAs) {
  const std::vector<ConfFile> files = {{"/home/user/.nccl.conf", {{"NCCL_IB_TC", "106"}, {"NCCL_IB_SL", "3"}}},
                                       {"/etc/nccl.conf", {{"NCCL_IB_SL", "5"}, {"NCCL_IB_TIMEOUT", "22"}}}};
  // Within NCCL: what the files say is in the environment as well, unless something else is.
  const std::map<std::string, std::string> environment = {
      {"NCCL_IB_TC", "41"}, {"NCCL_IB_SL", "3"}, {"NCCL_IB_TIMEOUT", "22"}, {"WEFT_PATHS", "8"}};
  const Loaded inside = load(
      [&](const char* name) { return environment.count(name) ? environment.at(name).c_str() : nullptr; }, {}, files);
  std::vector<std::string> lines;
  for (const Given& one : inside.given)
    lines.push_back(one.text());
  EXPECT_THAT(lines, testing::UnorderedElementsAre("WEFT_PATHS=8 (environment)", "NCCL_IB_TC=41 (environment)",
                                                   "NCCL_IB_SL=3 (/home/user/.nccl.conf)",
                                                   "NCCL_IB_TIMEOUT=22 (/etc/nccl.conf): counts as 20"));
  // Without NCCL, as in `weft devices`.
  const Loaded outside = load([](const char*) -> const char* { return nullptr; }, {}, files);
  EXPECT_EQ(outside.settings.ib_tc, 106);
  EXPECT_EQ(outside.settings.ib_sl, 3);
  EXPECT_EQ(outside.settings.ib_timeout, 20);
}

TEST(Settings, AWrongValueInAFileNamesTheFile) {
  const Loaded loaded =
      load([](const char*) -> const char* { return nullptr; }, {}, {{"/etc/nccl.conf", {{"NCCL_IB_SL", "x"}}}});
  ASSERT_EQ(loaded.errors.size(), 1u);
  EXPECT_THAT(loaded.errors[0].text(), HasSubstr("NCCL_IB_SL=x in /etc/nccl.conf"));
}

TEST(Settings, ConfFilesAreReadAsNcclReadsThem) {
  using Values = std::map<std::string, std::string>;
  EXPECT_EQ(parse_conf("A=1\n#B=2\nno line\n=3\nC=a=b\nA=4\nD="), (Values{{"A", "1"}, {"C", "a=b"}, {"D", ""}}));
  EXPECT_EQ(parse_conf(""), Values{});
  EXPECT_EQ(parse_conf("\n\n"), Values{});
}

TEST(Settings, F83_AValueInAFileBeginsAfterTheFirstEqualsSign) {
  const Loaded loaded = load([](const char*) -> const char* { return nullptr; }, {},
                             {{"/etc/nccl.conf", parse_conf("NCCL_SOCKET_IFNAME==ens1\n")}});
  EXPECT_EQ(loaded.settings.socket_ifname, "=ens1");
  EXPECT_EQ(load_from({{"NCCL_SOCKET_IFNAME", "=ens1"}}).settings.socket_ifname, "=ens1");
}

TEST(Settings, F84_ARangeOfPortsIsCheckedAsAWhole) {
  const Loaded good = load_from({{"WEFT_PORT_RANGE", "40000-40050"}});
  EXPECT_THAT(good.errors, IsEmpty());
  EXPECT_EQ(good.settings.port_range.first, 40000);
  EXPECT_EQ(good.settings.port_range.last, 40050);
  EXPECT_TRUE(load_from({{"WEFT_PORT_RANGE", "1-65535"}}).errors.empty());
  EXPECT_TRUE(load_from({{"WEFT_PORT_RANGE", "40000-40000"}}).errors.empty());
  EXPECT_FALSE(load_from({}).settings.port_range.given());
  const std::map<std::string, std::string> wrong = {
      {"40050-40000", "ends before it begins"},  {"0-70000", "is out of range"},
      {"40000-70000", "is out of range"},        {"40000", "is not a range"},
      {"a-b", "is not a whole number"},          {"-1-5", "is not a whole number"},
      {"40000-40050 ", "is not a whole number"}, {"40000-", "is not a whole number"}};
  for (const auto& [value, why] : wrong) {
    const Loaded loaded = load_from({{"WEFT_PORT_RANGE", value}});
    ASSERT_EQ(loaded.errors.size(), 1u) << value;
    EXPECT_EQ(loaded.errors[0].text(), "WEFT_PORT_RANGE=" + value + ": " + why +
                                           "; allowed: first-last, each from 1 to 65535, as in 40000-40050; "
                                           "default none");
    EXPECT_FALSE(loaded.settings.port_range.given());
  }
}

TEST(Settings, NamesAreUnique) {
  std::set<std::string> names;
  for (const Row& row : table())
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

// What a site has set for NCCL's own transport must not pass in silence.
TEST(Settings, VariablesThatAreNotReadSayWhy) {
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  const Loaded loaded = load(nothing, {"NCCL_IB_SPLIT_DATA_ON_QPS", "NCCL_CROSS_NIC", "HOME"});
  ASSERT_EQ(loaded.remarks.size(), 1u) << "NCCL reads NCCL_CROSS_NIC itself";
  EXPECT_THAT(loaded.remarks[0], testing::HasSubstr("NCCL_IB_SPLIT_DATA_ON_QPS has no effect on Weft (not needed)"));
  for (const NotRead& one : not_read()) {
    for (const Row& row : table())
      EXPECT_NE(row.name, one.name) << "read after all";
    EXPECT_STRNE(one.why, "");
  }
}

TEST(Settings, ThePageInDocsIsUpToDate) {
  std::ifstream file(WEFT_SOURCE "/docs/settings.md");
  std::ostringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), markdown()) << "run: build/bin/weft settings --markdown > docs/settings.md";
}

}  // namespace
}  // namespace weft::settings
