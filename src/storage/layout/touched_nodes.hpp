// Which nodes does a request touch?
#pragma once

#include <vector>

#include "oocarray/request.hpp"
#include "oocarray/striping.hpp"

namespace ooc::storage {

/// Element t says whether `r` touches the stripes of stripe index t (0 <= t < s.nn).
///
/// Stripe indexes repeat every P = nn * sf bytes, so only offsets modulo P matter.  Writing s for a level's
/// step modulo P: a level with s <= sf, or s >= P - sf, walks over every stripe between its first
/// and its last run and is replaced by one run; any other level repeats itself after P / gcd(s, P)
/// steps, and jumps far enough for all stripe indexes to be met soon, which ends the search.  So the cost
/// depends on nn and not on the number of regions.
std::vector<bool> touched_stripe_indexes(const request& r, const striping& s);

}  // namespace ooc::storage
