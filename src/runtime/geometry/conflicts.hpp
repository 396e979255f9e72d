// Accesses of two ranks in one epoch whose outcome depends on who was first.
//
//     both wrote     the same elements, exactly
//     at() read      elements that another rank wrote, exactly
//     read           a block in which another rank wrote; whether the same elements, nobody knows
//
// Pure functions: every rank comes to the same result from the same accesses.
#pragma once

#include <string>
#include <vector>

#include "runtime/geometry/access_log.hpp"
#include "runtime/geometry/array_geometry.hpp"

namespace ooc::detail {

struct conflict {
  enum class kind { both_wrote, read_element, read_block } what;
  int first = 0;   ///< rank that wrote (both_wrote) or read
  int second = 0;  ///< rank that wrote
  index_box box;   ///< the smallest that holds all elements concerned
};

/// At most one of each kind for every two ranks.
std::vector<conflict> find_conflicts(const array_geometry& g, const std::vector<accesses>& by_rank);

/// "ranks 0 and 2 both wrote elements of the box {3, 0} to {4, 8}; ...", at most some of them.
std::string describe(const std::vector<conflict>& all, std::size_t rank_of_array);

}  // namespace ooc::detail
