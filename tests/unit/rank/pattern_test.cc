#include "tests/rig/rank/pattern.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace weft::rank {
namespace {

std::vector<double> values(const Pattern& pattern, Element element, std::size_t count) {
  std::vector<std::byte> bytes(count * element_size(element));
  fill(pattern, element, 0, count, bytes.data());
  std::vector<double> out;
  for (std::size_t i = 0; i < count; i++) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * element_size(element), element_size(element));
    out.push_back(decode(element, bits));
  }
  return out;
}

double combine(Reduction reduction, double left, double right) {
  switch (reduction) {
    case Reduction::prod:
      return left * right;
    case Reduction::max:
      return std::max(left, right);
    case Reduction::min:
      return std::min(left, right);
    default:
      return left + right;
  }
}

// The closed form of the expected result against a reduction done element by element.
TEST(Pattern, ResultIsTheReductionOfTheInputs) {
  constexpr std::size_t kCount = 500;
  for (const std::string& name : reduction_names()) {
    const Reduction reduction = *reduction_from_name(name);
    for (int ranks = 1; ranks <= 12; ranks++) {
      auto reduced = values(reduction_input(Element::f64, reduction, 0, 3), Element::f64, kCount);
      for (int rank = 1; rank < ranks; rank++) {
        const auto next = values(reduction_input(Element::f64, reduction, rank, 3), Element::f64, kCount);
        for (std::size_t i = 0; i < kCount; i++)
          reduced[i] = combine(reduction, reduced[i], next[i]);
      }
      if (reduction == Reduction::avg) {
        for (double& value : reduced)
          value /= ranks;
      }
      EXPECT_EQ(values(reduction_result(Element::f64, reduction, ranks, 3), Element::f64, kCount), reduced)
          << name << " over " << ranks;
    }
  }
}

TEST(Pattern, SumsOfSixteenRanksStayExactInBf16) {
  for (double value : values(reduction_result(Element::bf16, Reduction::sum, 16, 0), Element::bf16, 100)) {
    EXPECT_LE(value, double(largest_exact(Element::bf16)));
  }
}

TEST(Pattern, CheckAcceptsWhatFillWrote) {
  for (const std::string& name : element_names()) {
    const Element element = *element_from_name(name);
    std::vector<std::byte> bytes(1000 * element_size(element));
    const Pattern pattern = transfer(element, 1, 2, 5);
    fill(pattern, element, 70, 1000, bytes.data());
    EXPECT_EQ(check(pattern, element, 70, 1000, bytes.data()).wrong, 0u) << name;
  }
}

// Each way of damaging data that a transport could have must show.
class Damage : public testing::Test {
 protected:
  void SetUp() override { fill(pattern_, Element::f32, 0, kCount, data_.data()); }
  std::size_t wrong() const { return check(pattern_, Element::f32, 0, kCount, data_.data()).wrong; }

  static constexpr std::size_t kCount = 4096;
  Pattern pattern_ = transfer(Element::f32, 0, 1, 7);
  std::vector<float> data_ = std::vector<float>(kCount);
};

TEST_F(Damage, OneFlippedBit) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &data_[17], sizeof bits);
  bits ^= 1;
  std::memcpy(&data_[17], &bits, sizeof bits);
  const Check found = check(pattern_, Element::f32, 0, kCount, data_.data());
  EXPECT_EQ(found.wrong, 1u);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->index, 17u);
}

TEST_F(Damage, BlocksExchanged) {
  std::swap_ranges(data_.begin(), data_.begin() + 256, data_.begin() + 1024);
  EXPECT_GT(wrong(), 500u);
}

TEST_F(Damage, ABlockFromTheIterationBefore) {
  fill(transfer(Element::f32, 0, 1, 6), Element::f32, 512, 256, data_.data() + 512);
  EXPECT_GT(wrong(), 250u);
}

TEST_F(Damage, ABlockFromAnotherSender) {
  fill(transfer(Element::f32, 2, 1, 7), Element::f32, 0, 256, data_.data());
  EXPECT_GT(wrong(), 250u);
}

TEST_F(Damage, ShiftedByOne) {
  std::rotate(data_.begin(), data_.begin() + 1, data_.end());
  EXPECT_GT(wrong(), 4000u);
}

TEST(Pattern, ARankCountedTwiceShowsInASum) {
  const auto once = values(reduction_result(Element::f32, Reduction::sum, 4, 1), Element::f32, 256);
  const auto extra = values(reduction_input(Element::f32, Reduction::sum, 2, 1), Element::f32, 256);
  for (std::size_t i = 0; i < once.size(); i++)
    EXPECT_NE(once[i], once[i] + extra[i]) << i;
}

}  // namespace
}  // namespace weft::rank
