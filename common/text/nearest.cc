#include "common/text/nearest.h"

#include <algorithm>

namespace weft::text {

std::size_t edit_distance(std::string_view left, std::string_view right) {
  // Optimal string alignment: one row more than Levenshtein, for swapped neighbours.
  std::vector<std::vector<std::size_t>> rows(left.size() + 1, std::vector<std::size_t>(right.size() + 1));
  for (std::size_t i = 0; i <= left.size(); i++)
    rows[i][0] = i;
  for (std::size_t j = 0; j <= right.size(); j++)
    rows[0][j] = j;
  for (std::size_t i = 1; i <= left.size(); i++) {
    for (std::size_t j = 1; j <= right.size(); j++) {
      const std::size_t replace = rows[i - 1][j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[left.size()][right.size()];
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += separator;
    out += word;
  }
  return out;
}

}  // namespace weft::text
