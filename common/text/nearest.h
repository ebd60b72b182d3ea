// The nearest of a few known names to a mistyped one, for "did you mean".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::text {

// Number of single-character insertions, deletions, replacements and swaps of neighbours between two words.
std::size_t edit_distance(std::string_view left, std::string_view right);

// The known name closest to `word`, if it is close enough to be a slip of the hand (a third of its length at most).
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

// "a, b, c".
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

}  // namespace weft::text
