// Bytes as hexadecimal digits.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weft::save_tree {

// Two lower-case digits a byte.
std::string to_hexadecimal(std::span<const std::uint8_t> bytes);
bool is_hexadecimal(const std::string& text);
// Of one digit.
std::uint8_t value_of(char digit);

}  // namespace weft::save_tree
