#include "measure/paired_ratio.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace bench {
namespace {

/// Four significant digits: the rest is noise.
double rounded(double v) {
  if (v == 0 || !std::isfinite(v)) return v;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(v))) - 3);
  return unit < 1 ? std::round(v / unit) / std::round(1 / unit) * 1.0 : std::round(v / unit) * unit;
}

}  // namespace

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void paired_ratio::add(double numerator, double denominator) {
  values_.push_back(numerator / denominator);
  std::fprintf(stderr, "  %-28s %8.3f\n", name_.c_str(), values_.back());
}

void paired_ratio::put(json& out) const {
  if (values_.empty()) throw std::logic_error(name_ + " was not measured");
  const auto [least, largest] = std::minmax_element(values_.begin(), values_.end());
  out[name_] = rounded(middle());
  out[name_ + "_min"] = rounded(*least);
  out[name_ + "_max"] = rounded(*largest);
}

}  // namespace bench
