#include "bench/weft/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>

namespace weft::statistics {
namespace {

constexpr int kDraws = 4000;
constexpr double kWidest = 0.05;
constexpr std::size_t kFewest = 2;

// splitmix64 (Steele, Lea, Flood 2014): the same on every machine, unlike the standard library's distributions.
class Random {
 public:
  std::size_t below(std::size_t count) {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return std::size_t((mixed ^ mixed >> 31) % count);
  }

 private:
  std::uint64_t state_ = 1;
};

std::vector<double> logarithms(const std::vector<double>& values) {
  std::vector<double> out;
  for (const double value : values)
    out.push_back(std::log(value));
  return out;
}

// One side's repetitions by condition, in logarithms: where each condition lies and how repetitions scatter.
struct Side {
  std::vector<double> centres;
  std::vector<std::size_t> repetitions;
  std::vector<double> residuals;

  // Whether every condition has enough repetitions to see how they scatter.
  bool repeated() const {
    return std::all_of(repetitions.begin(), repetitions.end(), [](std::size_t count) { return count >= kFewest; });
  }

  void add(const std::vector<double>& values) {
    const std::vector<double> logs = logarithms(values);
    const double centre = median(logs), count = double(logs.size());
    centres.push_back(centre);
    repetitions.push_back(logs.size());
    for (const double value : logs)
      residuals.push_back((value - centre) * std::sqrt(count / std::max(1.0, count - 1)));
  }

  // The centre that another set of repetitions under this condition might have had.
  double drawn_centre(std::size_t condition, Random& random) const {
    std::vector<double> drawn;
    for (std::size_t i = 0; i < repetitions[condition]; i++) {
      drawn.push_back(centres[condition] + residuals[random.below(residuals.size())]);
    }
    return median(drawn);
  }
};

Estimate unbounded(double figure) {
  return {figure, 0, std::numeric_limits<double>::infinity()};
}

// What stands for many values.
using Centre = double (*)(std::vector<double>);

double mean(std::vector<double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

Estimate bounded(double figure, std::size_t conditions, Centre centre,
                 const std::function<double(std::size_t, Random&)>& draw) {
  Random random;
  std::vector<double> figures;
  for (int i = 0; i < kDraws; i++) {
    std::vector<double> drawn;
    for (std::size_t condition = 0; condition < conditions; condition++)
      drawn.push_back(draw(condition, random));
    figures.push_back(centre(drawn));
  }
  return {figure, std::exp(percentile(figures, 0.025)), std::exp(percentile(figures, 0.975))};
}

}  // namespace

double percentile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  const double place = fraction * double(values.size() - 1);
  const auto below = std::size_t(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - double(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) {
  return percentile(std::move(values), 0.5);
}

Summary summary(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {median(values), *low, *high};
}

bool Estimate::resolved() const {
  return low >= median * (1 - kWidest) && high <= median * (1 + kWidest);
}

namespace {

std::vector<double> ratios(const std::vector<Pair>& pairs) {
  std::vector<double> out;
  for (const Pair& pair : pairs)
    out.push_back(median(pair.other) / median(pair.base));
  return out;
}

Estimate paired(const std::vector<Pair>& pairs, double figure, Centre centre) {
  Side base, other;
  for (const Pair& pair : pairs) {
    base.add(pair.base);
    other.add(pair.other);
  }
  if (!base.repeated() || !other.repeated()) return unbounded(figure);
  return bounded(figure, pairs.size(), centre, [&](std::size_t condition, Random& random) {
    const double drawn_base = base.drawn_centre(condition, random);
    return other.drawn_centre(condition, random) - drawn_base;
  });
}

}  // namespace

Estimate paired_ratio(const std::vector<Pair>& pairs) {
  return paired(pairs, median(ratios(pairs)), median);
}

Estimate mean_paired_ratio(const std::vector<Pair>& pairs) {
  return paired(pairs, std::exp(mean(logarithms(ratios(pairs)))), mean);
}

Estimate median_over(const std::vector<std::vector<double>>& conditions) {
  Side side;
  std::vector<double> medians;
  for (const std::vector<double>& values : conditions) {
    side.add(values);
    medians.push_back(median(values));
  }
  if (!side.repeated()) return unbounded(median(medians));
  return bounded(median(medians), conditions.size(), median,
                 [&](std::size_t condition, Random& random) { return side.drawn_centre(condition, random); });
}

}  // namespace weft::statistics
