#include "mpiio/extents.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/layout/folded_request.hpp"

namespace ooc::mpiio {

namespace {

std::uint64_t offset_of(const ooc_mpiio_extent& e) { return reinterpret_cast<std::uintptr_t>(e.offset); }
std::uintptr_t address_of(const ooc_mpiio_extent& e) { return reinterpret_cast<std::uintptr_t>(e.memory); }

}  // namespace

std::uint64_t end_of(std::span<const ooc_mpiio_extent> extents) {
  std::uint64_t end = 0;
  for (const ooc_mpiio_extent& e : extents)
    if (e.length != 0) end = std::max(end, offset_of(e) + e.length);
  return end;
}

placed_request as_request(std::span<const ooc_mpiio_extent> extents, std::uint64_t end) {
  std::uintptr_t base = ~std::uintptr_t{0};
  for (const ooc_mpiio_extent& e : extents)
    if (e.length != 0) base = std::min(base, address_of(e));
  std::vector<nested_request> entries;
  for (const ooc_mpiio_extent& e : extents) {
    const std::uint64_t offset = offset_of(e), memory = address_of(e) - base;
    if (e.length == 0 || offset >= end) continue;
    const std::uint64_t length = std::min<std::uint64_t>(e.length, end - offset);
    if (!entries.empty() && entries.back().file_offset + entries.back().run == offset &&
        entries.back().memory_offset + entries.back().run == memory)
      entries.back().run += length;
    else
      entries.push_back({.file_offset = offset, .memory_offset = memory, .run = length});
  }
  placed_request r;
  if (!entries.empty()) r.base = reinterpret_cast<std::byte*>(base);
  r.wanted = storage::folded(std::move(entries));
  return r;
}

}  // namespace ooc::mpiio
