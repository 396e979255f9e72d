#include <Eigen/Core>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <thread>

#include "patterns/loops.hpp"

namespace bench::patterns {
namespace {

using matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

auto map(double* p, std::size_t n) {
  return Eigen::Map<matrix>(p, static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(n));
}

/// Runs `work` in a thread until it has ended (true) or the time is up: it then goes on by itself.
template <class F>
bool ended_in_time(const time_limit& t, F work) {
  const auto ended = std::make_shared<std::promise<void>>();
  std::future<void> end = ended->get_future();
  std::thread([ended, work] {
    work();
    ended->set_value();
  }).detach();
  return end.wait_until(t.end()) == std::future_status::ready;
}

}  // namespace

double eigen_colwise(const matrices& m, const time_limit& t) {
  const std::size_t n = m.n;
  // Outlives this call, as the thread may.
  auto& sums = *new Eigen::RowVectorXd(
      Eigen::RowVectorXd::Constant(static_cast<Eigen::Index>(n), std::numeric_limits<double>::quiet_NaN()));
  ended_in_time(t, [m, n, &sums] { sums.noalias() = map(m.a, n).colwise().sum(); });
  const volatile double* const seen = sums.data();
  std::size_t columns = 0;
  while (columns < n && !std::isnan(seen[columns])) ++columns;
  // One that was begun counts half.
  return (static_cast<double>(columns) + (columns < n ? 0.5 : 0)) * static_cast<double>(n);
}

// Every eighth row at most, and some 250 altogether; not the last.
std::vector<std::size_t> eigen_marks(std::size_t n) {
  std::vector<std::size_t> rows;
  const std::size_t step = std::max<std::size_t>(8, n / 256);
  for (std::size_t r = 0; r + step < n; r += step) rows.push_back(r);
  return rows;
}

double eigen_transpose(const matrices& m, const time_limit& t) {
  const std::size_t n = m.n;
  const auto size = static_cast<double>(n);
  if (ended_in_time(t, [m, n] { map(m.b, n).transposeInPlace(); })) return size * size;
  // Eigen goes through the rows of the upper triangle: a marked row is done when its end has changed.
  const std::vector<std::size_t> marks = eigen_marks(n);
  const auto is_done = [&](std::size_t row) { return static_cast<const volatile double*>(m.b)[row * n + n - 1] == 2; };
  std::size_t done = 0, not_done = marks.size();
  while (done < not_done) {
    const std::size_t middle = (done + not_done) / 2;
    if (is_done(marks[middle]))
      done = middle + 1;
    else
      not_done = middle;
  }
  const double rows = done < marks.size() ? static_cast<double>(marks[done]) : size;
  // Between two marks: half of the way.
  const double so_far =
      std::max(0.0, rows - (done > 0 ? static_cast<double>(marks[1] - marks[0]) / 2 : 0)) + (done == 0 ? 1 : 0);
  return 2 * so_far * size - so_far * so_far;
}

}  // namespace bench::patterns
