#include "runtime/pager/prefetcher.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "runtime/blocks/page_dropper.hpp"
#include "runtime/pager/signals.hpp"

namespace ooc::detail {

unsigned prefetcher::limit_of(const segment_state& s) noexcept {
  constexpr std::uint64_t most_bytes = std::uint64_t{32} << 20;
  const std::uint64_t wanted = s.ahead_bytes != 0 ? s.ahead_bytes : state_.memory.pool().budget() / 8;
  const std::uint64_t share = std::min(most_bytes, wanted);
  std::uint64_t blocks = std::max<std::uint64_t>(1, share / s.block_bytes());
  if (option_) blocks = std::min<std::uint64_t>(option_ - 1, state_.memory.pool().budget() / 4 / s.block_bytes());
  // Of a segment with pins only one block is in use at a time.
  const std::uint64_t most = s.options.max_resident, in_use = s.options.pinned_only ? 2 : 4;
  if (most) blocks = std::min(blocks, most < 4 && most >= in_use ? 1 : most / 4);
  return static_cast<unsigned>(blocks);
}

// Blocks of a group wait in memory for later lines of their sweep: three quarters of it, shared by
// all segments, or nothing is gained.  A limit on read-ahead is one on groups too.
ahead_group prefetcher::group_for(const segment_state& s, unsigned limit) noexcept {
  ahead_group g{std::min(s.source->fetched_together(), block_loader::most_together), 0};
  if (g.size > limit) g.size = 1;
  g.room = state_.memory.pool().budget() / s.block_bytes() /
           std::max<std::size_t>(
               1, static_cast<std::size_t>(std::count_if(state_.segments.begin(), state_.segments.end(),
                                                         [](const segment_state* any) { return !any->parent; })));
  if (s.options.max_resident) g.room = std::min(g.room, s.options.max_resident);
  g.room -= g.room / 4;
  return g;
}

void prefetcher::touched(unique_lock& l, const touch_event& e) {
  segment_state& s = *e.segment;
  const unsigned limit = limit_of(s);
  if (limit == 0) return;
  const ahead_group g = group_for(s, limit);
  wanted_.clear();
  const std::int64_t step = s.past.follow(e.block, s.blocks.load(std::memory_order_relaxed), limit, g, wanted_).step;
  if (e.kind == touch::write && step != 0) writer_.write_swept(l, s, e.block, step);
  if (g.size == 1 && !s.options.pinned_only) let_go_behind(s, e.block);
  // Blocks beyond the neighbours' next rows will be changed by others before they are needed here.
  if (const block_range& near = s.options.part.near; near.contains(e.block))
    std::erase_if(wanted_, [&](block_index b) { return !near.contains(b); });
  for (auto first = wanted_.begin(); first != wanted_.end();) {
    auto last = first + 1;
    while (last != wanted_.end() && *last == last[-1] + 1 && *last % g.size != 0) ++last;
    if (!loader_.fetch(l, s, {first, last})) return;
    first = last;
  }
}

void prefetcher::let_go_behind(segment_state& s, block_index touched) {
  const auto left = s.past.not_wanted_soon(touched, s.blocks.load(std::memory_order_relaxed),
                                           3 * state_.memory.pool().budget() / s.block_bytes(),
                                           state_.ran_ns.load(std::memory_order_relaxed));
  if (left) make_next(s, *left);
}

static_assert(segment_history::in_use == frame_needs::blocks);

void prefetcher::make_next(segment_state& s, block_index b) noexcept {
  if (b >= s.blocks.load(std::memory_order_relaxed)) return;
  frame* const f = s.frame_of(s.at(b));
  if (f->segment == &s && f->block == b && f->list != frame_list::none && !f->past.read_ahead)
    state_.memory.order().make_next(f);
}

void prefetcher::grain_touched(unique_lock& l, const touch_event& e) {
  segment_state& g = *e.segment;
  const block_index whole = e.block / g.grains_in_block;
  const segment_history::sweep sweep = follow_grains(l, e);
  state_.events.note(sweep.step != 0);
  if (!sweep.runs && !grains::filled_up(g, e.block)) return;
  frame* const f = grains_.merge(l, g, e.block);
  if (!f) return;
  if (sweep.runs) g.past.run_ends();
  loader_.load_merged(l, f);
  touched(l, {g.parent, whole, e.kind, false});
}

segment_history::sweep prefetcher::follow_grains(unique_lock& l, const touch_event& e) {
  segment_state& g = *e.segment;
  const std::uint64_t grain = g.block_bytes();
  const unsigned limit = limit_of(g);
  if (limit == 0) return {};
  wanted_.clear();
  const segment_history::sweep sweep =
      g.past.follow_grains(e.block * grain + e.offset, g.reach, grain, limit, e.miss || e.was_out, wanted_);
  if (wanted_.empty()) return sweep;
  std::vector<block_index> begun;
  if (sweep.walks) {
    note_left(l, g);
    const unlocked gap(l, state_.mutex());
    block_index before = ~block_index{0};
    for (const block_index at : wanted_)
      if (const block_index b = at / g.grains_in_block;
          std::exchange(before, b) != b && g.parent->at(b).state() == block_state::out) {
        begun.push_back(b);
        grains_.begin(*g.parent, b, true);
      }
  }
  constexpr std::size_t together = block_loader::most_together;
  // A block that will be written has a fault for that anyway.
  const arrival then = e.kind == touch::read && wanted_.size() >= together ? arrival::maps_itself : arrival::waits;
  for (std::size_t i = 0; i < wanted_.size(); i += together)
    if (!loader_.fetch(l, g, std::span(wanted_).subspan(i, std::min(together, wanted_.size() - i)), then)) break;
  for (const block_index b : begun) state_.memory.tables().end_if_empty(g, b);  // where none has come
  return sweep;
}

// A walk down columns is about to come to the `wanted_` grains.  What it has left ages, several at a time.
void prefetcher::note_left(unique_lock& l, segment_state& g) {
  const block_index end = g.blocks.load(std::memory_order_relaxed);
  const auto is_in = [&](block_index i) { return i < end && g.at(i).state() != block_state::out; };
  for (const block_index at : wanted_)
    if (!is_in(at)) g.past.names_ahead(at);
  left_.clear();
  while (const auto at = g.past.next_left()) {
    const bool before = is_in(*at - 1), after = is_in(*at + 1);
    if (is_in(*at) && before != after) left_.push_back(before ? *at - 1 : *at + 1);
  }
  for (std::size_t i = 0; i < left_.size(); i += page_dropper::most_together)
    g.past.aged_left(state_.memory.ageing().these(
        l, g, std::span(left_).subspan(i, std::min(page_dropper::most_together, left_.size() - i))));
}

void prefetcher::fetch(segment_state& s, std::span<const block_range> which, arrival then) {
  const unsigned together = std::min(s.source->fetched_together(), block_loader::most_together);
  for (const block_range& r : which)
    for (block_index b = r.first; b < r.last;) {
      std::array<block_index, block_loader::most_together> group;
      std::size_t n = 0;
      do {
        if (s.at(b).state() == block_state::out) group[n++] = b;
      } while (++b < r.last && b % together != 0);
      if (n == 0) continue;
      guarded_lock g(state_.mutex());
      if (!loader_.fetch(g, s, {group.data(), n}, then)) return;
    }
}

void prefetcher::fetch_before_sweep(segment_state& s, std::span<const block_range> which) {
  std::uint64_t left = 0;
  {
    guarded_lock g(state_.mutex());
    if (s.past.pattern() != access_pattern::random) left = limit_of(s);
  }
  std::vector<block_range> nearest;
  for (auto r = which.rbegin(); r != which.rend() && left > 0; ++r) {
    const std::uint64_t n = std::min<std::uint64_t>(left, r->last - r->first);
    nearest.push_back({r->last - n, r->last});
    left -= n;
  }
  fetch(s, nearest);
}

}  // namespace ooc::detail
