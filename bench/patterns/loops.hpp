// The loops of `oocbench patterns`, as anybody would write them over plain memory.
//
// Each goes through memory that is ours or a mapped file's until it is through, or until its time is
// up, and returns how much it has done, in touches: two sides that did different amounts are compared
// by how much they did in a second.  The same numbers come on both sides.  What is read is looked at;
// a wrong value throws std::runtime_error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench::patterns {

class time_limit {
 public:
  explicit time_limit(double seconds)
      : end_(clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds))) {}
  bool over() const { return clock::now() >= end_; }
  std::chrono::steady_clock::time_point end() const { return end_; }

 private:
  using clock = std::chrono::steady_clock;
  clock::time_point end_;
};

/// Two n x n matrices in row-major order: element k of `a` is k, `b` is there to be written.
struct matrices {
  double* a;
  double* b;
  std::size_t n;
};

/// A random graph in CSR form, and what a breadth-first search needs of as many numbers as vertices.
struct graph {
  static constexpr std::uint32_t degree = 10;
  static constexpr std::uint32_t unseen = ~std::uint32_t{0};

  const std::uint32_t* offsets;  ///< vertices + 1
  const std::uint32_t* edges;
  std::uint32_t* distance;  ///< unseen
  std::uint32_t* queue;
  std::uint32_t vertices;

  static std::uint32_t target(std::uint64_t edge, std::uint32_t vertices);
};

/// Row-major numbers of random elements.
std::vector<std::size_t> random_elements(std::size_t count, std::size_t of);

double random_read(const matrices& m, const time_limit& t);
double random_read_16(const matrices& m, const time_limit& t);
double zipf_read(const matrices& m, const time_limit& t);
double zipf_update(const matrices& m, const time_limit& t);
double random_update(const matrices& m, const time_limit& t);
/// out[i] = the element with indices[i].
double gather(const matrices& m, const std::vector<std::size_t>& indices, std::vector<double>& out,
              const time_limit& t);
void check_gathered(const std::vector<std::size_t>& indices, const std::vector<double>& out, std::size_t count);
double column_read(const matrices& m, const time_limit& t);
double column_update(const matrices& m, const time_limit& t);
double jacobi(const matrices& m, const time_limit& t);
double jacobi_swapped(const matrices& m, const time_limit& t);
/// The first 3/16 of the array, one and a half times the budget, again and again.
double sweep_again(const matrices& m, const time_limit& t);
double update_again(const matrices& m, const time_limit& t);
double transpose_naive(const matrices& m, const time_limit& t);
double tiles_row_major(const matrices& m, const time_limit& t);
double binary_search(const matrices& m, const time_limit& t);
double breadth_first(const graph& g, const time_limit& t);

// Calls of Eigen cannot be stopped: they run in a thread of their own, which goes on when the time is
// up, and how far they have come is seen from what they have written.  The memory must stay as long as
// the process.
double eigen_colwise(const matrices& m, const time_limit& t);
/// Transposes b.  Of the rows eigen_marks() the last element must be 1, and of the columns 2.
double eigen_transpose(const matrices& m, const time_limit& t);
std::vector<std::size_t> eigen_marks(std::size_t n);

}  // namespace bench::patterns
