#include "storage/layout/folded_request.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace ooc::storage {

namespace {

/// The same but for where they are.
bool alike(const nested_request& a, const nested_request& b) {
  return a.run == b.run && a.depth == b.depth &&
         std::equal(a.levels.begin(), a.levels.begin() + a.depth, b.levels.begin());
}

/// How many entries from the first one on are alike and evenly spaced, forwards in file and memory.
std::size_t evenly_spaced(std::span<const nested_request> entries) {
  if (entries.size() < 2) return entries.size();
  const nested_request& first = entries[0];
  const std::uint64_t file_step = entries[1].file_offset - first.file_offset;
  const std::uint64_t memory_step = entries[1].memory_offset - first.memory_offset;
  std::size_t n = 1;
  while (n < entries.size() && alike(first, entries[n]) && entries[n].file_offset > entries[n - 1].file_offset &&
         entries[n].memory_offset > entries[n - 1].memory_offset &&
         entries[n].file_offset - entries[n - 1].file_offset == file_step &&
         entries[n].memory_offset - entries[n - 1].memory_offset == memory_step)
    ++n;
  return n;
}

/// Joins entries that are evenly spaced; true if there were any.
bool fold(std::vector<nested_request>& entries) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.size();) {
    const nested_request first = entries[i];
    const std::size_t n = first.depth == nested_request::max_levels ? 1 : evenly_spaced(std::span(entries).subspan(i));
    nested_request joined = first;
    if (n > 1) {
      std::copy(first.levels.begin(), first.levels.begin() + first.depth, joined.levels.begin() + 1);
      joined.levels[0] = {n, entries[i + 1].file_offset - first.file_offset,
                          entries[i + 1].memory_offset - first.memory_offset};
      ++joined.depth;
    }
    entries[kept++] = joined;
    i += n;
  }
  const bool shorter = kept < entries.size();
  entries.resize(kept);
  return shorter;
}

}  // namespace

request folded(std::vector<nested_request> entries) {
  while (fold(entries)) {
  }
  request r;
  for (const nested_request& n : entries) r.add(n);
  return r;
}

}  // namespace ooc::storage
