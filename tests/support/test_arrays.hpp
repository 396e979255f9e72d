// The tests of arrays share this: stores, a struct as element type, and patterns.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>

#include "oocarray/ooc_array.hpp"
#include "storage/base/page.hpp"
#include "support/memory_store.hpp"
#include "support/store_from_environment.hpp"

namespace ooc::testing {

/// An element that divides no block evenly.
struct triple {
  std::int32_t a;
  std::int16_t b[2];
  double c;
  float d;
  std::int32_t e;
  bool operator==(const triple&) const = default;
};
static_assert(sizeof(triple) == 24);

/// A value that differs from its neighbours in every byte that matters.
template <class T>
T value_of(std::uint64_t n) {
  const std::uint64_t mixed = n * 0x9e3779b97f4a7c15u >> 11;
  if constexpr (std::is_same_v<T, triple>)
    return {static_cast<std::int32_t>(mixed),
            {static_cast<std::int16_t>(n), static_cast<std::int16_t>(mixed >> 3)},
            static_cast<double>(n),
            static_cast<float>(mixed % 1000),
            static_cast<std::int32_t>(n + 1)};
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return {static_cast<double>(mixed), static_cast<double>(n)};
  else
    return static_cast<T>(mixed);
}

/// So many bytes where pages have 4 KiB; where they are larger, as many pages.
inline runtime_options memory(std::uint64_t bytes, unsigned read_ahead = 0) {
  runtime_options o;
  o.memory = bytes / 4_KiB * page_bytes + bytes % 4_KiB;
  o.read_ahead = read_ahead;
  return o;
}

/// Without the tile, where neither the file nor memory would have any.
template <class Layout, class T>
array_options<T> tile_if_used(array_options<T> o) {
  if (Layout::contiguous && o.order == file_order::row_major) o.tile.clear();
  return o;
}

enum class store_kind { in_memory, local };

/// A store with two nodes: in memory, or folders that are gone with the test.  The store of
/// OOC_TEST_STORE takes the place of both.
class test_store {
 public:
  explicit test_store(store_kind kind) : local_(store_from_environment()) {
    if (local_) return;
    if (kind == store_kind::in_memory) {
      nodes_.emplace(2);
      return;
    }
    folder_.emplace();
    store_options o;
    o.workers = 2;
    o.staging = 64_KiB;
    local_.emplace(store::open("local:" + (*folder_ / "node0").string() + "," + (*folder_ / "node1").string(), o));
  }
  ooc::store handle() const { return local_ ? *local_ : nodes_->handle(); }
  /// Bytes that it takes off a budget.
  std::uint64_t staging() const { return handle().core()->staging_bytes(); }

 private:
  std::optional<memory_store> nodes_;
  std::optional<temporary_folder> folder_;
  std::optional<ooc::store> local_;
};

/// A budget of so many blocks of 4 KiB beside the transfer buffers of the store.
inline runtime_options blocks(const test_store& s, std::uint64_t n) { return memory(s.staging() + n * 4_KiB); }

/// So many bytes for an algorithm, beside the transfer buffers of the store and the 16 blocks of 4 KiB that are left to
/// arrays.
inline runtime_options room_for(const test_store& s, std::uint64_t bytes) {
  return memory(s.staging() + 16 * 4_KiB + bytes);
}

}  // namespace ooc::testing
