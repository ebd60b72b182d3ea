// The two 16-bit floating-point types, by conversion to float. Written without branches so that loops over them
// vectorise; a compiler's own half type is not there in every compiler that builds this.
#pragma once

#include <bit>
#include <cstdint>

namespace weft::nccl_kernels {

struct Float16 {
  std::uint16_t bits;
};

struct Bfloat16 {
  std::uint16_t bits;
};

inline float widen(Bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t(value.bits) << 16);
}

// Rounds to nearest, ties to even; a NaN stays one.
inline void narrow(float value, Bfloat16& result) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  result.bits = std::uint16_t(value == value ? rounded : 0x7fc0);
}

inline float widen(Float16 value) {
  const std::uint32_t sign = std::uint32_t(value.bits & 0x8000) << 16;
  // Exponent and fraction moved to where float has them; multiplying by 2^112 makes up for the difference of the
  // exponents' biases and turns half's subnormal numbers into normal ones.
  const float magnitude = std::bit_cast<float>(std::uint32_t(value.bits & 0x7fff) << 13) * 0x1p112f;
  const bool special = (value.bits & 0x7c00) == 0x7c00;  // infinity, NaN
  const std::uint32_t bits =
      special ? (0x7f800000u | std::uint32_t(value.bits & 0x3ff) << 13) : std::bit_cast<std::uint32_t>(magnitude);
  return std::bit_cast<float>(bits | sign);
}

// Rounds to nearest, ties to even.
inline void narrow(float value, Float16& result) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  // Normal numbers: rebias the exponent by 127 - 15 and round at bit 13.
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Subnormal numbers: adding 0.5 puts the unit of the sum's fraction at 2^-24, half's smallest number.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
  std::uint32_t half = magnitude < (113u << 23) ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;  // rounds beyond 65504: infinity
  half = magnitude > 0x7f800000u ? 0x7e00u : half;   // NaN
  result.bits = std::uint16_t(half | sign);
}

}  // namespace weft::nccl_kernels
