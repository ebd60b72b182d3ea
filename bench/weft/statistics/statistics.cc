#include "bench/weft/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace weft::statistics {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Range range(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {median(values), *low, *high};
}

bool Ratio::resolved() const { return low >= 0.95 * mean && high <= 1.05 * mean; }

double student_t95(int degrees_of_freedom) {
  // Standard table; between its rows the next smaller number of degrees, which errs to the wide side.
  static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
                                      2.145,  2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
                                      2.052,  2.048, 2.045, 2.042};
  if (degrees_of_freedom < 1) return std::numeric_limits<double>::infinity();
  const auto row = std::min<std::size_t>(std::size_t(degrees_of_freedom), std::size(kTable));
  return kTable[row - 1];
}

Ratio paired_ratio(const std::vector<double>& numerator, const std::vector<double>& denominator) {
  Ratio out;
  std::vector<double> ratios, logs;
  for (std::size_t i = 0; i < std::min(numerator.size(), denominator.size()); i++) {
    ratios.push_back(numerator[i] / denominator[i]);
    logs.push_back(std::log(ratios.back()));
  }
  if (ratios.empty()) return out;
  out.median = median(ratios);
  double mean = 0;
  for (const double value : logs) mean += value / double(logs.size());
  out.mean = std::exp(mean);
  if (logs.size() < 2) {
    out.high = std::numeric_limits<double>::infinity();
    return out;
  }
  double squares = 0;
  for (const double value : logs) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / double(logs.size() - 1) / double(logs.size()));
  const double half = student_t95(int(logs.size()) - 1) * error;
  out.low = std::exp(mean - half);
  out.high = std::exp(mean + half);
  return out;
}

}  // namespace weft::statistics
