// The few statistics that figures are made of. Pure and deterministic.
#pragma once

#include <vector>

namespace weft::statistics {

double median(std::vector<double> values);  // 0 for none

struct Range {
  double median = 0;
  double min = 0;
  double max = 0;
};
Range range(const std::vector<double>& values);

// A ratio of paired runs (the same seed for both sides): geometric mean of the pairs' ratios with its two-sided 95 % interval, from Student's t on the
// logarithms. With fewer than two pairs the interval is unbounded: low 0, high infinite.
struct Ratio {
  double median = 0;
  double mean = 0;
  double low = 0;
  double high = 0;
  // Wider than 5 % of the mean to either side.
  bool resolved() const;
};
Ratio paired_ratio(const std::vector<double>& numerator, const std::vector<double>& denominator);

// Two-sided 95 % quantile of Student's t.
double student_t95(int degrees_of_freedom);

}  // namespace weft::statistics
