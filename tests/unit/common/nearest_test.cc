#include "common/text/nearest.h"

#include <gtest/gtest.h>

namespace weft::text {
namespace {

TEST(EditDistance, CountsEachKindOfSlipOnce) {
  EXPECT_EQ(edit_distance("paths", "paths"), 0u);
  EXPECT_EQ(edit_distance("paths", "pahts"), 1u);
  EXPECT_EQ(edit_distance("paths", "path"), 1u);
  EXPECT_EQ(edit_distance("paths", "pathss"), 1u);
  EXPECT_EQ(edit_distance("paths", "baths"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(EditDistance, IsSymmetric) {
  const std::vector<std::string> words = {"", "a", "spine", "psine", "WEFT_PATHS", "WEFT_PATH", "leaf"};
  for (const auto& left : words) {
    for (const auto& right : words)
      EXPECT_EQ(edit_distance(left, right), edit_distance(right, left));
  }
}

TEST(Nearest, FindsASlipAndNothingFarAway) {
  const std::vector<std::string> known = {"WEFT_PATHS", "WEFT_SEED", "WEFT_DISABLE"};
  EXPECT_EQ(nearest("WEFT_PATH", known), "WEFT_PATHS");
  EXPECT_EQ(nearest("WEFT_DISALBE", known), "WEFT_DISABLE");
  EXPECT_EQ(nearest("HOME", known), std::nullopt);
}

}  // namespace
}  // namespace weft::text
