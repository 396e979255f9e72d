#include "copying/box_walk.hpp"

#include <algorithm>
#include <charconv>

#include "base/command.hpp"
#include "base/entry_text.hpp"

namespace ooc::tool {

namespace {

std::uint64_t product(const storage::index& n, std::uint64_t factor) {
  for (const std::uint64_t k : n) factor *= k;
  return factor;
}

}  // namespace

storage::index box::extents() const {
  storage::index n;
  for (std::size_t d = 0; d < lower.size(); ++d) n.push_back(upper[d] - lower[d]);
  return n;
}

box parse_box(const std::string& text, const storage::index& extents) {
  const auto refuse = [&](const std::string& why) {
    throw usage_mistake("--box: '" + text + "' " + why + "; write a range for each dimension of " +
                        shape_text(extents) + ", for instance 0:" + std::to_string(extents[0]) +
                        (extents.size() > 1 ? ",:" : ""));
  };
  box b{storage::index(extents.size(), 0), extents};
  if (text.empty()) return b;
  std::size_t d = 0;
  for (std::size_t at = 0; at <= text.size(); ++d) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string range = text.substr(at, end - at);
    at = end + 1;
    const auto colon = range.find(':');
    if (d == extents.size()) refuse("has more ranges than the array has dimensions");
    if (colon == range.npos) refuse("is no box: '" + range + "' is no range");
    const auto number = [&](const std::string& n, std::uint64_t otherwise) {
      std::uint64_t value = otherwise;
      const auto r = std::from_chars(n.data(), n.data() + n.size(), value);
      if (!n.empty() && (r.ec != std::errc() || r.ptr != n.data() + n.size()))
        refuse("is no box: '" + n + "' is no number");
      return value;
    };
    b.lower[d] = number(range.substr(0, colon), 0);
    b.upper[d] = number(range.substr(colon + 1), extents[d]);
    if (b.upper[d] > extents[d]) refuse("reaches past the array in dimension " + std::to_string(d));
    if (b.lower[d] >= b.upper[d]) refuse("holds nothing in dimension " + std::to_string(d));
  }
  if (d != extents.size()) refuse("has fewer ranges than the array has dimensions");
  return b;
}

void for_each_piece(const box& b, const storage::index& grain, std::uint32_t element_size, std::uint64_t max_bytes,
                    const std::function<void(const storage::index&, const storage::index&, std::uint64_t)>& f) {
  const std::size_t rank = b.lower.size();
  if (product(b.extents(), 1) == 0) return;
  storage::index step = grain.empty() ? storage::index(rank, 1) : grain;
  const bool too_large = product(step, element_size) > max_bytes && product(step, 1) > 1;
  // As many pieces as fit, the last dimension first.
  for (std::size_t d = rank; !too_large && d-- > 0;) {
    const std::uint64_t most = max_bytes / product(step, element_size);
    const std::uint64_t needed = (b.upper[d] - b.lower[d] + step[d] - 1) / step[d] + 1;  // however they are aligned
    step[d] *= std::max<std::uint64_t>(1, std::min(most, needed));
    if (step[d] < b.upper[d] - b.lower[d]) break;
  }
  storage::index first(rank);
  for (std::size_t d = 0; d < rank; ++d) first[d] = b.lower[d] / step[d] * step[d];
  for (storage::index at = first;;) {
    box piece{at, at};
    for (std::size_t d = 0; d < rank; ++d) {
      piece.lower[d] = std::max(at[d], b.lower[d]);
      piece.upper[d] = std::min(at[d] + step[d], b.upper[d]);
    }
    if (too_large)
      for_each_piece(piece, {}, element_size, max_bytes, f);
    else
      f(piece.lower, piece.upper, product(piece.extents(), element_size));
    std::size_t d = rank;
    while (d-- > 0) {
      at[d] += step[d];
      if (at[d] < b.upper[d]) break;
      at[d] = first[d];
      if (d == 0) return;
    }
  }
}

}  // namespace ooc::tool
