#include "tests/rig/rank/element.h"

#include <cmath>
#include <cstring>

namespace weft::rank {
namespace {

struct Description {
  Element element;
  const char* name;
  std::size_t size;
  bool floating;
  std::uint64_t largest_exact;
};

constexpr Description kElements[] = {
    {Element::i8, "i8", 1, false, 127},
    {Element::u8, "u8", 1, false, 255},
    {Element::i32, "i32", 4, false, 0x7fffffff},
    {Element::u32, "u32", 4, false, 0xffffffff},
    {Element::i64, "i64", 8, false, std::uint64_t(1) << 53},
    {Element::u64, "u64", 8, false, std::uint64_t(1) << 53},
    {Element::f16, "f16", 2, true, std::uint64_t(1) << 11},
    {Element::f32, "f32", 4, true, std::uint64_t(1) << 24},
    {Element::f64, "f64", 8, true, std::uint64_t(1) << 53},
    {Element::bf16, "bf16", 2, true, std::uint64_t(1) << 8},
};

const Description& description(Element element) {
  for (const Description& candidate : kElements) {
    if (candidate.element == element) return candidate;
  }
  return kElements[0];
}

template <class To, class From>
To bits_of(From value) {
  To bits = 0;
  static_assert(sizeof bits == sizeof value);
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
std::uint64_t encode_half(double value) {
  const std::uint64_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (magnitude >= 65536.0 || std::isnan(magnitude)) return sign | 0x7c00;
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // [0.5, 1)
  const int biased = exponent - 1 + 15;
  if (biased <= 0) return sign | std::uint64_t(std::ldexp(magnitude, 24));
  return sign | std::uint64_t(biased) << 10 | (std::uint64_t(std::ldexp(fraction, 11)) & 0x3ff);
}

double decode_half(std::uint64_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int biased = int(bits >> 10 & 0x1f);
  const double fraction = double(bits & 0x3ff);
  if (biased == 0x1f) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (biased == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, biased - 25);
}

}  // namespace

std::optional<Element> element_from_name(std::string_view name) {
  for (const Description& candidate : kElements) {
    if (name == candidate.name) return candidate.element;
  }
  return std::nullopt;
}

std::string element_name(Element element) {
  return description(element).name;
}

std::vector<std::string> element_names() {
  std::vector<std::string> names;
  for (const Description& candidate : kElements)
    names.emplace_back(candidate.name);
  return names;
}

std::size_t element_size(Element element) {
  return description(element).size;
}
bool is_floating(Element element) {
  return description(element).floating;
}
std::uint64_t largest_exact(Element element) {
  return description(element).largest_exact;
}

std::uint64_t encode(Element element, double value) {
  switch (element) {
    case Element::f16:
      return encode_half(value);
    case Element::bf16:
      return bits_of<std::uint32_t>(float(value)) >> 16;
    case Element::f32:
      return bits_of<std::uint32_t>(float(value));
    case Element::f64:
      return bits_of<std::uint64_t>(value);
    default:
      break;
  }
  const auto bits = std::uint64_t(std::int64_t(value));
  const std::size_t width = 8 * element_size(element);
  return width == 64 ? bits : bits & ((std::uint64_t(1) << width) - 1);
}

double decode(Element element, std::uint64_t bits) {
  switch (element) {
    case Element::f16:
      return decode_half(bits);
    case Element::bf16:
      return double(bits_of<float>(std::uint32_t(bits << 16)));
    case Element::f32:
      return double(bits_of<float>(std::uint32_t(bits)));
    case Element::f64:
      return bits_of<double>(bits);
    case Element::i8:
      return double(std::int8_t(bits));
    case Element::u8:
      return double(std::uint8_t(bits));
    case Element::i32:
      return double(std::int32_t(bits));
    case Element::u32:
      return double(std::uint32_t(bits));
    case Element::i64:
      return double(std::int64_t(bits));
    case Element::u64:
      return double(bits);
  }
  return 0;
}

}  // namespace weft::rank
