#include "tests/rig/emulated_cuda/kernels/reduction.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/rig/emulated_cuda/kernels/half.h"

namespace weft::nccl_kernels {
namespace {

// Exact value of a half number, by its definition.
double value_of(Float16 half) {
  const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Float16, EveryFiniteNumberWidensExactlyAndComesBack) {
  for (unsigned bits = 0; bits < 0x10000; bits++) {
    const Float16 half{std::uint16_t(bits)};
    if ((bits & 0x7c00) == 0x7c00) continue;
    ASSERT_EQ(widen(half), value_of(half)) << bits;
    Float16 back;
    narrow(widen(half), back);
    ASSERT_EQ(back.bits, half.bits);
  }
}

TEST(Float16, RoundsToTheNearestTiesToEven) {
  for (unsigned bits = 0; bits < 0x7bff; bits++) {
    const Float16 low{std::uint16_t(bits)}, high{std::uint16_t(bits + 1)};
    const auto middle = float((value_of(low) + value_of(high)) / 2);
    Float16 result;
    narrow(middle, result);
    ASSERT_EQ(result.bits, (bits & 1) == 0 ? low.bits : high.bits) << bits;
    narrow(std::nextafter(middle, 0.0f), result);
    ASSERT_EQ(result.bits, low.bits) << bits;
    narrow(std::nextafter(middle, 1e9f), result);
    ASSERT_EQ(result.bits, high.bits) << bits;
  }
}

TEST(Float16, BeyondTheLargestIsInfinityAndNanStaysNan) {
  Float16 result;
  narrow(65519.0f, result);
  EXPECT_EQ(result.bits, 0x7bff);
  narrow(65520.0f, result);
  EXPECT_EQ(result.bits, 0x7c00);
  narrow(-1e30f, result);
  EXPECT_EQ(result.bits, 0xfc00);
  narrow(std::nanf(""), result);
  EXPECT_TRUE(std::isnan(widen(result)));
  EXPECT_TRUE(std::isinf(widen(Float16{0x7c00})));
}

TEST(Bfloat16, RoundsToTheNearestTiesToEven) {
  for (unsigned bits = 0; bits < 0x7f7f; bits++) {
    const float low = widen(Bfloat16{std::uint16_t(bits)}), high = widen(Bfloat16{std::uint16_t(bits + 1)});
    Bfloat16 result;
    narrow(low, result);
    ASSERT_EQ(result.bits, bits);
    const float middle = std::bit_cast<float>(std::uint32_t(bits) << 16 | 0x8000);
    narrow(middle, result);
    ASSERT_EQ(result.bits, (bits & 1) == 0 ? bits : bits + 1);
    ASSERT_GE(middle, low);
    ASSERT_LE(middle, high);
  }
  Bfloat16 result;
  narrow(std::nanf(""), result);
  EXPECT_TRUE(std::isnan(widen(result)));
}

// Reads and writes elements as doubles, independently of the code under test.
template <class Element>
struct Type;
#define PLAIN_TYPE(element, number)                      \
  template <>                                            \
  struct Type<element> {                                 \
    static constexpr int kNumber = number;               \
    static double get(element x) { return double(x); }   \
    static element make(double x) { return element(x); } \
  }
PLAIN_TYPE(std::int8_t, kInt8);
PLAIN_TYPE(std::uint8_t, kUint8);
PLAIN_TYPE(std::int32_t, kInt32);
PLAIN_TYPE(std::uint32_t, kUint32);
PLAIN_TYPE(std::int64_t, kInt64);
PLAIN_TYPE(std::uint64_t, kUint64);
PLAIN_TYPE(float, kFloat32);
PLAIN_TYPE(double, kFloat64);
#undef PLAIN_TYPE
template <>
struct Type<Float16> {
  static constexpr int kNumber = kFloat16;
  static double get(Float16 x) { return value_of(x); }
  static Float16 make(double x) {
    Float16 half;
    narrow(float(x), half);
    return half;
  }
};
template <>
struct Type<Bfloat16> {
  static constexpr int kNumber = kBfloat16;
  static double get(Bfloat16 x) { return double(std::bit_cast<float>(std::uint32_t(x.bits) << 16)); }
  static Bfloat16 make(double x) { return {std::uint16_t(std::bit_cast<std::uint32_t>(float(x)) >> 16)}; }
};

template <class Element>
class ReductionTest : public ::testing::Test {
 protected:
  static constexpr bool kIsSigned = !std::is_unsigned_v<Element>;
  static constexpr bool kIsInteger = std::is_integral_v<Element>;
  static constexpr std::size_t kCount = 1003;  // no multiple of a vector's width

  ReductionTest() {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> small(kIsSigned ? -11 : 0, 11);  // products are exact in every type
    for (std::size_t i = 0; i < kCount; i++) {
      left_.push_back(Type<Element>::make(small(random)));
      right_.push_back(Type<Element>::make(small(random)));
    }
  }

  template <class Expected>
  void expect(Operation operation, std::uint64_t argument, Expected expected) {
    std::vector<Element> out(kCount);
    const Reduction reduction(operation, Type<Element>::kNumber, argument);
    ASSERT_EQ(reduction.element_bytes(), sizeof(Element));
    reduction.combine(out.data(), left_.data(), right_.data(), kCount);
    for (std::size_t i = 0; i < kCount; i++) {
      ASSERT_EQ(Type<Element>::get(out[i]), expected(Type<Element>::get(left_[i]), Type<Element>::get(right_[i]))) << i;
    }
    std::vector<Element> in_place = left_;
    reduction.combine(in_place.data(), in_place.data(), right_.data(), kCount);
    EXPECT_EQ(std::memcmp(in_place.data(), out.data(), kCount * sizeof(Element)), 0);
  }

  std::vector<Element> left_, right_;
};

using Elements = ::testing::Types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
                                  Float16, float, double, Bfloat16>;
TYPED_TEST_SUITE(ReductionTest, Elements);

TYPED_TEST(ReductionTest, Sum) {
  this->expect(kSum, 0, [](double x, double y) { return x + y; });
}

TYPED_TEST(ReductionTest, Product) {
  this->expect(kProd, 0, [](double x, double y) { return x * y; });
}

TYPED_TEST(ReductionTest, MinimumAndMaximum) {
  std::uint64_t minimum = 0, maximum = 1;
  if (this->kIsInteger) {
    // What NCCL's host code gives: the sign bit for signed types, and everything inverted for the maximum.
    const std::uint64_t sign = this->kIsSigned ? std::uint64_t(1) << (8 * sizeof(TypeParam) - 1) : 0;
    minimum = sign;
    maximum = ~sign;
  }
  this->expect(kMinMax, minimum, [](double x, double y) { return std::min(x, y); });
  this->expect(kMinMax, maximum, [](double x, double y) { return std::max(x, y); });
}

TYPED_TEST(ReductionTest, PreMultiplication) {
  std::uint64_t argument = 0;
  const TypeParam scalar = Type<TypeParam>::make(3);
  std::memcpy(&argument, &scalar, sizeof scalar);
  const Reduction reduction(kPreMulSum, Type<TypeParam>::kNumber, argument);
  ASSERT_TRUE(reduction.has_preparation());
  EXPECT_FALSE(reduction.has_completion());
  std::vector<TypeParam> out(this->kCount);
  reduction.prepare(out.data(), this->left_.data(), this->kCount);
  for (std::size_t i = 0; i < this->kCount; i++)
    ASSERT_EQ(Type<TypeParam>::get(out[i]), 3 * Type<TypeParam>::get(this->left_[i]));
}

TYPED_TEST(ReductionTest, Division) {
  if constexpr (!std::is_integral_v<TypeParam>) {
    EXPECT_DEATH(Reduction(kSumPostDiv, Type<TypeParam>::kNumber, 6), "of a floating-point type");
  } else {
    // 2.29.7 has one function for both signs and tells by bit 0; 2.22.3 has the plain divisor.
    const std::uint64_t argument = kSignedDivisionHasOwnFunctions ? 3 : 3 << 1 | std::uint64_t(this->kIsSigned);
    const Reduction reduction(kSumPostDiv, Type<TypeParam>::kNumber, argument);
    ASSERT_TRUE(reduction.has_completion());
    std::vector<TypeParam> values = this->left_;
    reduction.complete(values.data(), this->kCount);
    for (std::size_t i = 0; i < this->kCount; i++)
      ASSERT_EQ(double(values[i]), std::trunc(double(this->left_[i]) / 3)) << i;
  }
}

TEST(Reductions, IntegersWrapAround) {
  const std::uint8_t left[] = {200, 255}, right[] = {100, 255};
  std::uint8_t out[2];
  Reduction(kSum, kUint8, 0).combine(out, left, right, 2);
  EXPECT_EQ(out[0], 44);
  Reduction(kProd, kUint8, 0).combine(out, left, right, 2);
  EXPECT_EQ(out[1], 1);
  const std::int32_t big[] = {0x7fffffff}, one[] = {1};
  std::int32_t wrapped[1];
  Reduction(kSum, kInt32, 0).combine(wrapped, big, one, 1);
  EXPECT_EQ(wrapped[0], std::numeric_limits<std::int32_t>::min());
}

TEST(Reductions, UnknownElementTypesAreNamed) {
  EXPECT_DEATH(Reduction(kSum, 10, 0), "not emulated: element type 10");
}

}  // namespace
}  // namespace weft::nccl_kernels
