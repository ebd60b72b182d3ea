// The element types of NCCL's public interface, as numbers: which bits stand for a small exact value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::rank {

// Values are those of ncclDataType_t in nccl.h.
enum class Element : int { i8 = 0, u8 = 1, i32 = 2, u32 = 3, i64 = 4, u64 = 5, f16 = 6, f32 = 7, f64 = 8, bf16 = 9 };

std::optional<Element> element_from_name(std::string_view name);
std::string element_name(Element element);
std::vector<std::string> element_names();

std::size_t element_size(Element element);  // bytes
bool is_floating(Element element);
// Integers from 0 to this one are exact in the type.
std::uint64_t largest_exact(Element element);

// The bits that hold `value`; integers wrap as the type's arithmetic does. For the two 16-bit floats the value must be
// exactly representable or be rounded by the caller's tolerance (towards zero here).
std::uint64_t encode(Element element, double value);
double decode(Element element, std::uint64_t bits);

}  // namespace weft::rank
