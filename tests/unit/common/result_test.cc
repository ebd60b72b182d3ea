#include "common/result/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace weft {
namespace {

TEST(Error, TextLeavesEmptyPartsOut) {
  EXPECT_EQ((Error{"it broke", "", 0, ""}).text(), "it broke");
  EXPECT_EQ((Error{"it broke", "here", 0, "mend it"}).text(), "here: it broke; mend it");
}

TEST(Error, TextNamesTheErrno) {
  EXPECT_EQ(system_error("cannot open", ENOENT, "/x").text(), "/x: cannot open: No such file or directory (ENOENT)");
}

TEST(Error, UnknownErrnoKeepsItsNumber) {
  EXPECT_EQ(errno_name(47110), "errno 47110");
}

TEST(Result, HoldsAValueThatCanOnlyMove) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result.take(), 7);
}

TEST(Result, HoldsAnError) {
  Result<int> result = Error{"no", "", 0, ""};
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "no");
}

TEST(Result, VoidIsFineByDefault) {
  EXPECT_TRUE(Result<void>().ok());
  EXPECT_FALSE(Result<void>(Error{"no", "", 0, ""}).ok());
}

}  // namespace
}  // namespace weft
