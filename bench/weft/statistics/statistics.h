// Medians, percentiles and paired ratios with a bound. Pure and deterministic: the same numbers give the same answer.
#pragma once

#include <vector>

namespace weft::statistics {

struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
};

// Linear interpolation between neighbours; `fraction` from 0 to 1. `values` must not be empty.
double percentile(std::vector<double> values, double fraction);
double median(std::vector<double> values);
Summary summary(const std::vector<double>& values);

// Repeated measurements of two sides under one condition, here one hash seed of the fabric. Positive numbers.
struct Pair {
  std::vector<double> base;
  std::vector<double> other;
};

// 95 % bounds: all conditions were the caller's choice, so they are no sample of anything; the bounds say how far
// repeating the measurements under the same conditions would move the figure.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;

  // An interval wider than ±5 % of the figure decides nothing.
  bool resolved() const;
};

// Median over the conditions of the ratio of the two sides' medians. The bounds come from drawing repetitions anew:
// residuals against the condition's median, in logarithms, are put together over all conditions (a condition has few),
// scaled up for the degree of freedom that the median took, and drawn 4000 times from a fixed seed. Where a side has
// fewer than two repetitions under some condition nothing is known: low is 0, high is infinite. `pairs` must not be
// empty, nor a side.
Estimate paired_ratio(const std::vector<Pair>& pairs);

// The geometric mean of the ratios instead of their median, with bounds drawn in the same way: where the conditions
// fall into two groups far apart, a median says which group is the larger and no more.
Estimate mean_paired_ratio(const std::vector<Pair>& pairs);

// The same for one side: the median over the conditions of the medians.
Estimate median_over(const std::vector<std::vector<double>>& conditions);

}  // namespace weft::statistics
