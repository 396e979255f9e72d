// What tests of algorithms over matrices on ranks share.
#pragma once

#include <cstdint>

#include "mpi/ranks.hpp"
#include "support/algorithm/matrices.hpp"

namespace ooc::testing {

/// Each rank writes its own rows; nobody syncs.
template <class T, class Layout>
void store_own_rows(const dense<T>& m, ooc_array<T, 2, Layout>& a) {
  const auto [first, last] = a.local_rows();
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j)
      a(i, j) = m(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
}

inline std::uint64_t sum_of_ranks(process_group& group, std::uint64_t n) {
  group.all_reduce("sum", {&n, 1}, reduction::sum);
  return n;
}

}  // namespace ooc::testing
