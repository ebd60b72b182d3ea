#include "bench/weft/save_tree/hexadecimal.h"

#include <algorithm>
#include <cctype>

namespace weft::save_tree {

std::string to_hexadecimal(std::span<const std::uint8_t> bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t byte : bytes)
    (out += kDigits[byte >> 4]) += kDigits[byte & 15];
  return out;
}

bool is_hexadecimal(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char letter) { return std::isxdigit(letter); });
}

std::uint8_t value_of(char digit) {
  const auto letter = static_cast<unsigned char>(digit);
  return std::uint8_t(std::isdigit(letter) ? letter - '0' : std::tolower(letter) - 'a' + 10);
}

}  // namespace weft::save_tree
