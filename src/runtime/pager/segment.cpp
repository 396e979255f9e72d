#include "runtime/pager/segment.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include "runtime/blocks/address_room.hpp"
#include "runtime/blocks/frame_needs.hpp"
#include "runtime/pager/fault_handler.hpp"
#include "runtime/pager/pager.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

namespace {

/// Addresses before and after the blocks in which a touch is named.
constexpr std::size_t guard_bytes = std::size_t{1} << 30;

/// Zero pages from the kernel, whole ones: every block is `out`.
std::byte* make_table(const std::string& array, std::uint64_t bytes) {
  std::byte* const p = sys::map(nullptr, in_whole_pages(bytes), PROT_READ | PROT_WRITE, sys::reserve_flags);
  if (!p) refuse_addresses("array '" + array + "': its table of blocks", bytes);
  return p;
}

/// Of the counts of blocks that have records on a page of the table.
std::uint64_t bytes_of_counts(const segment_state& s) noexcept {
  return in_whole_pages(s.options.max_blocks * sizeof(block)) / page_bytes * sizeof *s.blocks_on_page;
}

void give_up_table(const segment_state& s) noexcept OOC_NO_THREAD_SAFETY_ANALYSIS {
  if (s.table) sys::unmap(s.table, in_whole_pages(s.options.max_blocks * sizeof(block)));
  if (s.blocks_on_page) sys::unmap(reinterpret_cast<std::byte*>(s.blocks_on_page), in_whole_pages(bytes_of_counts(s)));
}

/// Blocks that other processes write to are compared with a twin, reads that are recorded are those of
/// blocks, and who limits buffers means blocks: these come whole.
bool may_have_grains(const segment_options& o) noexcept {
  constexpr std::uint64_t worth_it = 16;  // grains in a block
  return o.grains && o.block_bytes >= worth_it * grain_bytes && o.block_bytes % grain_bytes == 0 && !o.shared &&
         !o.note_reads && !o.pinned_only && !o.max_resident;
}

void give_up_addresses(const segment_state& s) noexcept { sys::unmap(s.base - s.guard, s.reserved + 2 * s.guard); }

/// The blocks among `which` that are marked, which they are no longer.
std::vector<block_range> take_marks(segment_state& s, std::span<const block_range> which,
                                    std::atomic<std::uint8_t> block::*mark) {
  std::vector<block_range> marked;
  for (const block_range& r : which)
    for (block_index b = r.first; b < r.last; ++b) {
      std::atomic<std::uint8_t>& m = s.at(b).*mark;
      if (!m.load(std::memory_order_relaxed)) continue;
      m.store(0, std::memory_order_relaxed);
      if (!marked.empty() && marked.back().last == b)
        ++marked.back().last;
      else
        marked.push_back({b, b + 1});
    }
  return marked;
}

// Where addresses are short the guards are what can be spared, then grains.  True: there may be grains.
bool reserve(pager& p, segment_state& s) {
  const std::size_t alignment = s.options.block_bytes % sys::huge_page == 0 ? sys::huge_page : page_bytes;
  const auto needed = [&](bool in_grains) {
    return s.reserved + alignment + s.options.max_blocks * sizeof(block) +
           (in_grains ? s.reserved / grain_bytes * sizeof(block) : 0) +
           p.addresses_for_frames(s.options.block_bytes, in_grains);
  };
  const address_room room = address_room::now();
  const bool with_grains = may_have_grains(s.options) && p.grains().possible() && room.has_plenty(needed(true));
  const std::string what = "array '" + s.options.name + "' with the frames of its blocks";
  if (!room.has(needed(with_grains))) refuse_addresses(what, needed(false));
  if (!room.has_plenty(needed(with_grains))) spare_addresses();
  s.guard = room.guard_beside(needed(with_grains), guard_bytes);
  std::byte* reserved = sys::map_aligned(s.reserved + 2 * s.guard, alignment, PROT_NONE);
  if (!reserved && s.guard) {
    s.guard = 0;
    reserved = sys::map_aligned(s.reserved, alignment, PROT_NONE);
  }
  if (!reserved) refuse_addresses(what, needed(with_grains));
  s.base = reserved + s.guard;
  return with_grains;
}

}  // namespace

segment::segment(detail::pager& p, segment_options o, block_source& source)
    : pager_(p), state_(std::make_unique<segment_state>()) {
  segment_state& s = *state_;
  if (o.block_bytes == 0 || o.block_bytes % page_bytes)
    throw usage_error(errc::invalid_request, "array '" + o.name + "': a block of " + std::to_string(o.block_bytes) +
                                                 " bytes is not a multiple of " + std::to_string(page_bytes) +
                                                 " bytes");
  o.max_blocks = std::max({o.max_blocks, o.blocks, std::uint64_t{1}});
  if (o.max_resident && !o.pinned_only) o.max_resident = std::max(o.max_resident, frame_needs::blocks);
  if (o.max_blocks > max_segment_bytes / o.block_bytes)
    throw usage_error(errc::invalid_request, "array '" + o.name + "': " + std::to_string(o.max_blocks) + " blocks of " +
                                                 std::to_string(o.block_bytes) +
                                                 " bytes exceed the 64 TiB of addresses");
  s.options = std::move(o);
  s.source = &source;
  s.set_blocks(s.options.blocks, s.options.bytes);
  s.reserved = s.options.max_blocks * s.options.block_bytes;
  const bool with_grains = reserve(pager_, s);
  try {
    s.table = reinterpret_cast<block*>(make_table(s.options.name, s.options.max_blocks * sizeof(block)));
    if (with_grains) add_grains();
    pager_.add(s);
  } catch (...) {
    give_up_addresses(s);
    give_up_table(s);
    if (grains_) give_up_table(*grains_);
    throw;
  }
}

// A second table over the same addresses.
void segment::add_grains() {
  segment_state& s = *state_;
  grains_ = std::make_unique<segment_state>();
  segment_state& g = *grains_;
  g.options.name = s.options.name;
  g.options.block_bytes = grain_bytes;
  g.options.writable = s.options.writable;
  g.options.temporary = s.options.temporary;
  g.grains_in_block = s.block_bytes() / grain_bytes;
  g.options.max_blocks = s.options.max_blocks * g.grains_in_block;
  g.source = s.options.grains;
  g.base = s.base;
  g.parent = &s;
  g.set_blocks(s.reach / grain_bytes, s.reach);
  g.table = reinterpret_cast<block*>(make_table(g.options.name, g.options.max_blocks * sizeof(block)));
  g.blocks_on_page = reinterpret_cast<std::uint16_t*>(make_table(g.options.name, bytes_of_counts(g)));
  s.grains = &g;
}

segment::~segment() {
  if (fault_handler::in_forked_child()) {
    grains_.release();
    state_.release();  // the threads that it would need exist in the parent only
    return;
  }
  close();
  fault_handler::remove_range(*state_);
  give_up_addresses(*state_);
}

void segment::close(bool with_runtime) noexcept {
  segment_state& s = *state_;
  if (closed() || fault_handler::in_forked_child()) return;
  s.use.store(with_runtime ? segment_use::closed_with_runtime : segment_use::closed, std::memory_order_seq_cst);
  pager_.remove(s);
  give_up_table(s);
  if (grains_) give_up_table(*grains_);
}

bool segment::closed() const noexcept { return state_->use.load(std::memory_order_acquire) != segment_use::open; }

std::byte* segment::base() const noexcept { return state_->base; }
std::uint64_t segment::block_bytes() const noexcept { return state_->options.block_bytes; }
std::uint64_t segment::blocks() const noexcept { return state_->blocks; }
std::uint64_t segment::dirty_blocks() const { return state_->dirty + (grains_ ? grains_->dirty.load() : 0); }

failure segment::writeback() {
  fault_handler::reclaim();
  const block_range all[] = {every_block};
  return pager_.writeback(*state_, all);
}

failure segment::writeback(std::span<const block_range> which) {
  fault_handler::reclaim();
  return pager_.writeback(*state_, which);
}

segment::invalidated segment::invalidate(bool discard) {
  fault_handler::reclaim();
  const block_range all[] = {{0, state_->blocks}};
  return pager_.invalidate(*state_, all, discard);
}

segment::invalidated segment::invalidate(std::span<const block_range> which, bool discard) {
  fault_handler::reclaim();
  return pager_.invalidate(*state_, which, discard);
}

std::vector<block_range> segment::take_written(std::span<const block_range> which) {
  std::vector<block_range> written = take_marks(*state_, which, &block::written);
  pager_.mark_dirty_as_written(*state_);
  return written;
}

std::vector<block_range> segment::take_read() {
  const block_range all{0, blocks()};
  return take_marks(*state_, {&all, 1}, &block::read);
}

void segment::note_written(std::span<const block_range> which) {
  for (const block_range& r : which)
    for (block_index b = r.first; b < r.last; ++b) state_->at(b).written = 1;
}

void segment::prefetch(std::span<const block_range> which) {
  fault_handler::reclaim();
  pager_.ahead().fetch(*state_, which);
}
void segment::fetch_before_sweep(std::span<const block_range> which) {
  pager_.ahead().fetch_before_sweep(*state_, which);
}
void segment::advise(access_pattern p) {
  fault_handler::reclaim();
  pager_.advise(*state_, p);
}

void segment::set_read_ahead(std::uint64_t bytes) { pager_.set_read_ahead(*state_, bytes); }

void segment::serve_read_of(const std::byte* element) {
  pager_.bring_in(*state_, static_cast<std::uint64_t>(element - base()), touch::read);
}

failure segment::pin(std::span<const block_range> which, access_mode mode) {
  fault_handler::reclaim();
  return pager_.pins().pin(*state_, which, mode);
}

void segment::unpin(std::span<const block_range> which, access_mode mode) noexcept {
  pager_.pins().unpin(*state_, which, mode);
}

failure bring_in(segment& s, std::span<const block_range> which, access_mode mode) {
  return s.pager_.pins().bring_in(*s.state_, which, mode);
}

failure bring_in(segment& s, const std::byte* first, std::size_t bytes, access_mode mode) {
  const auto from = static_cast<std::uint64_t>(first - s.base()), end = from + bytes;
  const block_range which[] = {{from / s.block_bytes(), (end + s.block_bytes() - 1) / s.block_bytes()}};
  return bytes == 0 ? failure{} : bring_in(s, which, mode);
}

void segment::promise(std::span<const block_range> which) {
  fault_handler::reclaim();
  throw_if(pager_.promise(*state_, which));
}

void segment::clear_promises() {
  const block_range all{0, blocks()};
  pager_.clear_promises(*state_, {&all, 1});
}

void segment::clear_promises(std::span<const block_range> which) { pager_.clear_promises(*state_, which); }

// The first block that ends elsewhere, or not at all, where there are to be so many.
block_index segment::edge(std::uint64_t blocks, std::uint64_t bytes) const noexcept {
  const segment_state& s = *state_;
  return std::min(blocks, std::min(bytes ? bytes : ~bytes, s.reach.load()) / s.block_bytes());
}

// Where addresses are opened or closed for grains, no block is mapped.
void segment::clear_edge(block_index first) {
  segment_state& s = *state_;
  if (!s.grains) return;
  const block_range edge[] = {{first, s.blocks}};
  throw_if(pager_.grains().leave(s, edge));
  pager_.invalidate(s, edge, true);
}

void segment::grow(std::uint64_t blocks, std::uint64_t bytes) {
  assert(blocks <= state_->options.max_blocks);
  const block_index first = edge(blocks, bytes);
  const pager::arrivals_held_off held(pager_, *state_, first);
  clear_edge(first);
  pager_.resize_range(*state_, blocks, bytes);
}

void segment::shrink(std::uint64_t blocks, std::uint64_t bytes) {
  const block_range tail[] = {{blocks, state_->blocks}};
  const block_index first = edge(blocks, bytes);
  const pager::arrivals_held_off held(pager_, *state_, first);
  clear_edge(first);
  pager_.invalidate(*state_, tail, true);
  pager_.resize_range(*state_, blocks, bytes);
}

void segment::set_part(const segment_part& part) {
  assert(state_->dirty == 0);
  pager_.set_part(*state_, part);
}

}  // namespace ooc::detail
