#include "tests/rig/rank/rank_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace weft::rank {
namespace {

using testing::HasSubstr;

class RankFileTest : public testing::Test {
 protected:
  ~RankFileTest() override { std::remove(path_.c_str()); }
  Result<RankFile> read(const std::string& operations, const std::string& extra = "") {
    std::ofstream(path_) << R"({"rank": 1, "ranks": 4, "exchange": "/x", "result": "/y", "operations": [)" << operations
                         << "]" << extra << "}";
    return read_rank_file(path_);
  }
  std::string error(const std::string& operations, const std::string& extra = "") {
    auto file = read(operations, extra);
    return file.ok() ? "no error" : file.error().text();
  }
  std::string path_ = testing::TempDir() + "rank_" + std::to_string(getpid()) + ".json";
};

TEST_F(RankFileTest, ReadsAnOperation) {
  const auto file =
      read(R"({"op": "reduce", "bytes": 4096, "type": "bf16", "reduction": "max", "iterations": 3, "root": 2})");
  ASSERT_TRUE(file.ok()) << file.error().text();
  const Operation& operation = file->operations.at(0);
  EXPECT_EQ(operation.kind, Kind::reduce);
  EXPECT_EQ(operation.element, Element::bf16);
  EXPECT_EQ(operation.reduction, Reduction::max);
  EXPECT_EQ(operation.iterations, 3);
  EXPECT_EQ(operation.root, 2);
}

TEST_F(RankFileTest, NamesWhatIsWrong) {
  EXPECT_THAT(error(R"({"op": "allreduce", "bytes": 4})"), HasSubstr("did you mean \"all_reduce\"?"));
  EXPECT_THAT(error(R"({"op": "all_reduce", "bytes": 6})"), HasSubstr("6 is not a multiple of 4"));
  EXPECT_THAT(error(R"({"op": "all_gather", "bytes": 20})"), HasSubstr("20 is not a multiple of 16"));
  EXPECT_THAT(error(R"({"op": "all_to_all", "bytes": 16, "in_place": true})"), HasSubstr("has no in-place form"));
  EXPECT_THAT(error(R"({"op": "reduce", "bytes": 4, "root": 4})"), HasSubstr("allowed: 0 to 3"));
  EXPECT_THAT(error(R"({"op": "reduce", "bytes": 4, "type": "f64", "bites": 1})"),
              HasSubstr("did you mean \"bytes\"?"));
  EXPECT_THAT(error("", R"(, "device": -1)"), HasSubstr("allowed: 0 to 63"));
}

}  // namespace
}  // namespace weft::rank
