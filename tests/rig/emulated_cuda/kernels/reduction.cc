// Compiled with vectorisation on (CMakeLists.txt): every function is one plain loop.
#include "tests/rig/emulated_cuda/kernels/reduction.h"

#include <cstring>
#include <string>
#include <type_traits>

#include "tests/rig/emulated_cuda/emulated_cuda.h"
#include "tests/rig/emulated_cuda/kernels/block.h"
#include "tests/rig/emulated_cuda/kernels/half.h"

namespace weft::nccl_kernels {
namespace {

template <class Element>
constexpr bool is_half = std::is_same_v<Element, Float16> || std::is_same_v<Element, Bfloat16>;
template <class Element>
constexpr bool is_floating = std::is_floating_point_v<Element> || is_half<Element>;

// The type in which two elements are combined: half types are widened, small integers wrap by the conversion back.
template <class Element>
auto widened(Element value) {
  if constexpr (is_half<Element>)
    return widen(value);
  else
    return value;
}

template <class Element, class Value>
Element narrowed(Value value) {
  if constexpr (is_half<Element>) {
    Element result;
    narrow(value, result);
    return result;
  } else {
    return Element(value);
  }
}

template <class Element>
Element element_in(std::uint64_t argument) {
  Element element;
  std::memcpy(&element, &argument, sizeof element);
  return element;
}

template <class Element, class Operator>
void for_each_pair(void* out, const void* a, const void* b, std::size_t elements, Operator combine) {
  auto* to = static_cast<Element*>(out);
  const auto* left = static_cast<const Element*>(a);
  const auto* right = static_cast<const Element*>(b);
  for (std::size_t i = 0; i < elements; i++)
    to[i] = narrowed<Element>(combine(widened(left[i]), widened(right[i])));
}

// Integers wrap around: they are combined as an unsigned type of at least int's width.
template <class Value>
auto wrapping(Value value) {
  if constexpr (std::is_integral_v<Value>)
    return std::common_type_t<std::make_unsigned_t<Value>, unsigned>(value);
  else
    return value;
}

template <class Element>
void sum(void* out, const void* a, const void* b, std::size_t elements, std::uint64_t) {
  for_each_pair<Element>(out, a, b, elements, [](auto x, auto y) { return wrapping(x) + wrapping(y); });
}

// The deliberate defect "wrong_reduction": a test of the tests.
template <class Element>
void wrong_sum(void* out, const void* a, const void* b, std::size_t elements, std::uint64_t) {
  for_each_pair<Element>(out, a, b, elements, [](auto x, auto y) { return wrapping(x) + wrapping(y) + wrapping(y); });
}

template <class Element>
void product(void* out, const void* a, const void* b, std::size_t elements, std::uint64_t) {
  for_each_pair<Element>(out, a, b, elements, [](auto x, auto y) { return wrapping(x) * wrapping(y); });
}

// Integers: both sides are xored with the argument and the smaller one is kept; signs and min or max are in the
// argument. Floating point: bit 0 of the argument tells max from min.
template <class Element>
void minimum_or_maximum(void* out, const void* a, const void* b, std::size_t elements, std::uint64_t argument) {
  if constexpr (!is_floating<Element>) {
    using Bits = std::make_unsigned_t<Element>;
    const Bits mask = element_in<Bits>(argument);
    for_each_pair<Element>(out, a, b, elements,
                           [mask](auto x, auto y) { return Bits(Bits(x) ^ mask) < Bits(Bits(y) ^ mask) ? x : y; });
  } else if ((argument & 1) != 0) {
    for_each_pair<Element>(out, a, b, elements, [](auto x, auto y) { return x < y ? y : x; });
  } else {
    for_each_pair<Element>(out, a, b, elements, [](auto x, auto y) { return y < x ? y : x; });
  }
}

template <class Element>
void multiply_by_scalar(void* out, const void* in, std::size_t elements, std::uint64_t argument) {
  const auto* from = static_cast<const Element*>(in);
  auto* to = static_cast<Element*>(out);
  const Element scalar = element_in<Element>(argument);
  for (std::size_t i = 0; i < elements; i++)
    to[i] = narrowed<Element>(wrapping(widened(from[i])) * wrapping(widened(scalar)));
}

// The divisor of an average of integers; quotients are cut towards zero.
template <class Element>
void divide(void* out, const void* in, std::size_t elements, std::uint64_t argument) {
  const auto* from = static_cast<const Element*>(in);
  auto* to = static_cast<Element*>(out);
  if constexpr (kSignedDivisionHasOwnFunctions) {
    using Wide = std::common_type_t<Element, int>;
    for (std::size_t i = 0; i < elements; i++)
      to[i] = Element(from[i] / Wide(argument));
  } else {
    // Bit 0: the values are signed, though the function is the unsigned type's.
    using Signed = std::make_signed_t<Element>;
    const bool is_signed = (argument & 1) != 0;
    const auto divisor = Element(argument >> 1);
    const auto signed_divisor = std::common_type_t<Signed, int>(divisor);
    for (std::size_t i = 0; i < elements; i++)
      to[i] = is_signed ? Element(Signed(from[i]) / signed_divisor) : Element(from[i] / divisor);
  }
}

bool sums_are_wrong() {
  static const bool wrong = emulated_cuda_has_defect("wrong_reduction");
  return wrong;
}

}  // namespace

struct Reduction::Code {
  Combine combine;
  Map prepare = nullptr, complete = nullptr;
};

template <class Element>
Reduction::Code Reduction::code_for(Operation operation) {
  const Combine add = sums_are_wrong() ? wrong_sum<Element> : sum<Element>;
  switch (operation) {
    case kSum:
      return {add};
    case kProd:
      return {product<Element>};
    case kMinMax:
      return {minimum_or_maximum<Element>};
    case kPreMulSum:
      return {add, multiply_by_scalar<Element>};
    case kSumPostDiv:
      if constexpr (std::is_integral_v<Element>) return {add, nullptr, divide<Element>};
  }
  not_emulated("reduction " + std::to_string(operation) + " of a floating-point type");
}

Reduction::Code Reduction::code_for(Operation operation, int type) {
  switch (type) {
    case kInt8:
      return code_for<std::int8_t>(operation);
    case kUint8:
      return code_for<std::uint8_t>(operation);
    case kInt32:
      return code_for<std::int32_t>(operation);
    case kUint32:
      return code_for<std::uint32_t>(operation);
    case kInt64:
      return code_for<std::int64_t>(operation);
    case kUint64:
      return code_for<std::uint64_t>(operation);
    case kFloat16:
      return code_for<Float16>(operation);
    case kFloat32:
      return code_for<float>(operation);
    case kFloat64:
      return code_for<double>(operation);
    case kBfloat16:
      return code_for<Bfloat16>(operation);
    default:
      not_emulated("element type " + std::to_string(type));
  }
}

std::size_t element_bytes(int type) {
  switch (type) {
    case kInt8:
    case kUint8:
      return 1;
    case kFloat16:
    case kBfloat16:
      return 2;
    case kInt32:
    case kUint32:
    case kFloat32:
      return 4;
    case kInt64:
    case kUint64:
    case kFloat64:
      return 8;
    default:
      not_emulated("element type " + std::to_string(type));
  }
}

Reduction::Reduction(Operation operation, int type, std::uint64_t argument)
    : element_bytes_(nccl_kernels::element_bytes(type)), argument_(argument) {
  const Code code = code_for(operation, type);
  combine_ = code.combine;
  prepare_ = code.prepare;
  complete_ = code.complete;
}

void Reduction::combine(void* out, const void* a, const void* b, std::size_t elements) const {
  combine_(out, a, b, elements, argument_);
}

void Reduction::prepare(void* out, const void* in, std::size_t elements) const {
  prepare_(out, in, elements, argument_);
}

void Reduction::complete(void* values, std::size_t elements) const {
  complete_(values, values, elements, argument_);
}

}  // namespace weft::nccl_kernels
