#include "runtime/blocks/grain_tables.hpp"

#include <algorithm>
#include <cassert>

#include "runtime/blocks/block_mapping.hpp"
#include "runtime/blocks/sys.hpp"

namespace ooc::detail {

namespace {

const std::uint64_t grains_on_page = page_bytes / sizeof(block);
/// A page of records, and its share of one of page-table entries.
const std::uint64_t page_cost = page_bytes + page_bytes / 2;
static_assert(block_step % sizeof(block) == 0);

/// The pages of records of a block's grains.
block_range pages_of(const segment_state& g, block_index block) noexcept {
  const std::uint64_t first = block * g.grains_in_block;
  return {first / grains_on_page, (first + g.grains_in_block - 1) / grains_on_page + 1};
}

}  // namespace

void grain_tables::begin(segment_state& g, block_index index) noexcept {
  block& b = g.parent->at(index);
  if (b.has_table) return;
  b.has_table = 1;
  std::uint64_t bytes = 0;
  const block_range pages = pages_of(g, index);
  for (block_index p = pages.first; p < pages.last; ++p)
    if (g.blocks_on_page[p]++ == 0) bytes += page_cost;
  g.table_bytes += bytes;
  pool_.charge(bytes);
}

void grain_tables::end_if_empty(segment_state& g, block_index index) noexcept {
  block& b = g.parent->at(index);
  if (!b.has_table || b.grains > 0) return;
  const bool in_grains = b.state() == block_state::in_grains;
  if (in_grains ? !b.try_take(block_state::in_grains) : b.state() == block_state::busy)
    return;  // who is at work there comes here later
  const block_range of = g.parent->grains_of({index, index + 1});
  const bool empty = std::all_of(g.table + of.first, g.table + of.last, [](const block& grain) {
    return grain.word.load(std::memory_order_acquire) == word_of(block_state::out);
  });
  if (empty) {
    segment_state& s = *g.parent;
    const bool open = s.use.load(std::memory_order_relaxed) == segment_use::open;
    if (in_grains && open && s.mapped_bytes(index) == s.block_bytes())
      g.cls->mapping->give_up_page_tables(s.address(index), s.block_bytes());
    end(g, index);
  }
  if (in_grains) b.publish(empty ? block_state::out : block_state::in_grains);
}

void grain_tables::end(segment_state& g, block_index index) noexcept {
  block& b = g.parent->at(index);
  if (!b.has_table) return;
  b.has_table = 0;
  block_range gone{0, 0};
  const block_range pages = pages_of(g, index);
  for (block_index p = pages.first; p < pages.last; ++p) {
    assert(g.blocks_on_page[p] > 0);
    if (--g.blocks_on_page[p] > 0) continue;
    if (gone.first == gone.last) gone.first = p;
    gone.last = p + 1;
  }
  const std::uint64_t n = gone.last - gone.first;
  if (n == 0) return;
  auto* const records = reinterpret_cast<std::byte*>(g.table);
  if (!sys::advise(records + gone.first * page_bytes, n * page_bytes, MADV_DONTNEED))
    die("madvise of the records of grains", errno);
  g.table_bytes -= n * page_cost;
  pool_.refund(n * page_cost);
}

void grain_tables::forget(segment_state& g) noexcept {
  pool_.refund(g.table_bytes);
  g.table_bytes = 0;
}

std::uint64_t grain_tables::most_for_a_grain() noexcept {
  return 2 * page_cost + grain_bytes + sizeof(frame);  // a block's records may cross into a second page
}

}  // namespace ooc::detail
