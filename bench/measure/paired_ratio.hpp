// Ratios of runs that took turns, and how they scatter.
//
// On a machine whose speed wanders, the quotient of two runs that followed each other is steadier
// than the quotient of two averages: each round gives one ratio, and the median of these is the
// result, the least and the largest its spread.
#pragma once

#include <string>
#include <vector>

#include "measure/case.hpp"

namespace bench {

/// The middle value (mean of the middle two); `v` must not be empty.
double median(std::vector<double> v);

/// One figure, measured once per round.
class paired_ratio {
 public:
  explicit paired_ratio(std::string name) : name_(std::move(name)) {}

  /// The figure of one round is numerator / denominator; reported on stderr.
  void add(double numerator, double denominator);
  /// A figure that is no ratio (microseconds), with the same statistics.
  void add(double value) { add(value, 1.0); }

  double middle() const { return median(values_); }
  /// Sets NAME, NAME_min and NAME_max.
  void put(json& out) const;

 private:
  std::string name_;
  std::vector<double> values_;
};

}  // namespace bench
