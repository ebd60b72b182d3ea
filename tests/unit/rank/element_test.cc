#include "tests/rig/rank/element.h"

#include <gtest/gtest.h>

namespace weft::rank {
namespace {

TEST(Element, EveryNameLeadsBackToItsType) {
  for (const std::string& name : element_names()) {
    const auto element = element_from_name(name);
    ASSERT_TRUE(element) << name;
    EXPECT_EQ(element_name(*element), name);
  }
  EXPECT_FALSE(element_from_name("f33"));
}

TEST(Element, SmallIntegersAreExactInEveryType) {
  for (const std::string& name : element_names()) {
    const Element element = *element_from_name(name);
    for (int value = 0; value <= 127; value++)
      EXPECT_EQ(decode(element, encode(element, value)), value) << name;
  }
}

TEST(Element, TheLargestExactIntegerIsExact) {
  for (const std::string& name : element_names()) {
    const Element element = *element_from_name(name);
    const double value = double(largest_exact(element));
    EXPECT_EQ(decode(element, encode(element, value)), value) << name;
  }
}

TEST(Element, KnownBits) {
  EXPECT_EQ(encode(Element::f16, 1.0), 0x3c00u);
  EXPECT_EQ(encode(Element::f16, 0.25), 0x3400u);
  EXPECT_EQ(encode(Element::f16, 2048), 0x6800u);
  EXPECT_EQ(encode(Element::bf16, 1.0), 0x3f80u);
  EXPECT_EQ(encode(Element::f32, 1.0), 0x3f800000u);
  EXPECT_EQ(encode(Element::i8, 256), 0u) << "integers wrap";
}

}  // namespace
}  // namespace weft::rank
