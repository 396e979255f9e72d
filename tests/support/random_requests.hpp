// Requests of several ranks for one file, drawn at random.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "oocarray/request.hpp"
#include "support/random_seed.hpp"

namespace ooc::testing {

/// A request for each rank: every region of the file's `size` bytes belongs to one rank, or to none.
/// In memory there are gaps of a few bytes between some of the regions.
template <class Engine>
std::vector<request> random_requests(Engine& g, std::uint64_t size, std::uint64_t ranks) {
  std::vector<request> wanted(ranks);
  std::vector<std::uint64_t> ends(ranks);
  for (std::uint64_t at = 0; at < size;) {
    const std::uint64_t length = std::min(size - at, between(g, 1, between(g, 1, 9000)));
    if (const std::uint64_t r = between(g, 0, ranks); r < ranks) {
      wanted[r].add(at, ends[r], length);
      ends[r] += length + between(g, 0, 3);
    }
    at += length;
  }
  return wanted;
}

}  // namespace ooc::testing
