#include "runtime/blocks/resident_set.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "runtime/blocks/diff.hpp"

namespace ooc::detail {

namespace {

[[maybe_unused]] bool owned(const frame* f) noexcept { return f->segment->at(f->block).state() == block_state::busy; }

}  // namespace

// --- moving pages
// ----------------------------------------------------------------------------------

void resident_set::map_in(frame* f, bool writable) noexcept {
  assert(owned(f));
  f->cls->mapping->map_in(f, writable);
}

bool resident_set::map_out(frame* f, block_access has) noexcept {
  assert(owned(f));
  return f->cls->mapping->map_out(f, has);
}

void resident_set::set_access(frame* f, block_access to) noexcept {
  assert(owned(f));
  f->cls->mapping->set_access(f, to);
}

void resident_set::drop_bytes(frame* f, block_access has) noexcept {
  if (!map_out(f, has)) f->cls->mapping->discard(f);
}

// --- frames
// ----------------------------------------------------------------------------------------

void resident_set::link(frame* f, segment_state& s) noexcept {
  assert(!f->segment && f->list == frame_list::none && f->cls == s.cls);
  f->segment = &s;
  f->block = 0;  // one that the segment has, until assign()
  f->segment_prev = nullptr;
  f->segment_next = s.resident;
  if (s.resident) s.resident->segment_prev = f;
  s.resident = f;
  ++s.resident_count;
  f->pins = f->write_pins = 0;
  f->twin = nullptr;
  f->doubt = nullptr;
  f->parts = nullptr;
  f->merging = f->copying = f->partial = false;
  f->past = {};
  f->dirty.store(false, std::memory_order_relaxed);
  f->stale.store(false, std::memory_order_relaxed);
  f->failed.store(false, std::memory_order_relaxed);
}

void resident_set::unlink(frame* f) noexcept {
  segment_state& s = *f->segment;
  assert(s.resident_count > 0 && (f->segment_prev || s.resident == f));
  (f->segment_prev ? f->segment_prev->segment_next : s.resident) = f->segment_next;
  if (f->segment_next) f->segment_next->segment_prev = f->segment_prev;
  --s.resident_count;
}

void resident_set::assign(frame* f, segment_state& s, block_index b) noexcept {
  f->block = b;
  s.at(b).frame = s.cls->number_of(f);
  if (s.parent) ++s.block_of(b).grains;
}

void resident_set::release(frame* f) noexcept {
  segment_state& s = *f->segment;
  const block_index index = f->block;
  block& b = s.at(index);
  assert(s.frame_of(b) == f && is_transient(b.state()));
  if (f->past.read_ahead) {
    count(s, &counters::read_ahead_waste, f->past.stands_for);
    s.past.wasted(f->past);
  }
  mark_clean(f);
  order_.forget(f);
  if (s.parent) --s.block_of(index).grains;
  abandon(f);
  b.publish(block_state::out);
  tables_.grain_left(s, index);
  if (s.grains) tables_.end_if_empty(*s.grains, index);  // where a grain left while the block was busy
}

void resident_set::abandon(frame* f) noexcept {
  unlink(f);
  pool_.give_back(f);
}

void resident_set::mark_dirty(frame* f) noexcept {
  if (f->dirty.exchange(true, std::memory_order_relaxed)) return;
  f->segment->dirty.fetch_add(1, std::memory_order_relaxed);
  const segment_state& s = *f->segment;
  (s.parent ? s.block_of(f->block) : s.at(f->block)).written.store(1, std::memory_order_relaxed);
}

void resident_set::guess_dirty(frame* f) noexcept {
  segment_state& s = *f->segment;
  if (!s.parent || !s.may_write(f->block) || f->dirty.load(std::memory_order_relaxed)) return;
  assert(!s.may_have_twins());
  if (s.writes.writable_on_arrival(f->past)) mark_dirty(f);
}

void resident_set::mark_clean(frame* f) noexcept {
  if (f->dirty.exchange(false, std::memory_order_relaxed)) f->segment->dirty.fetch_sub(1, std::memory_order_relaxed);
  if (f->twin) pool_.give_back(std::exchange(f->twin, nullptr));
  delete std::exchange(f->doubt, nullptr);  // of dirty blocks only: never in a fault handler
  f->failed.store(false, std::memory_order_relaxed);
}

void resident_set::give_back_held(frame* f, block_state was) noexcept {
  order_.make_active(f);
  f->segment->at(f->block).publish(was);
}

void check_frames([[maybe_unused]] const segment_state& s) noexcept {
#ifndef NDEBUG
  std::size_t n = 0;
  const frame* before = nullptr;
  for (const frame* f = s.resident; f; before = f, f = f->segment_next, ++n) {
    assert(f->segment == &s && f->cls == s.cls && f->segment_prev == before);
    assert(f->list == frame_list::none || (f->pins == 0 && s.frame_of(s.at(f->block)) == f));
  }
  assert(n == s.resident_count);
#endif
}

// --- replacement
// -----------------------------------------------------------------------------------

frame* resident_set::obtain_linked(lock_type& l, segment_state& s, kept keep) noexcept {
  frame* f = obtain(l, s, true, keep);
  if (f) link(f, s);
  return f;
}

frame* resident_set::obtain(lock_type& l, segment_state& s, bool limited, kept keep) noexcept {
  ageing_.one_came_in(l);
  for (;;) {
    const bool own = limited && s.options.max_resident && s.resident_count >= s.options.max_resident;
    if (!own) {
      if (frame* f = pool_.take(*s.cls)) return f;
    }
    if (!evict(l, own ? &s : nullptr, keep)) return nullptr;
  }
}

bool resident_set::evict(lock_type& l, const segment_state* only, kept keep) noexcept {
  victim v;
  for (int attempt = 0;; ++attempt) {
    v = take_clean_victim(only, keep);
    if (!v.taken) return false;
    if (v.was == block_state::ready) break;
    bool out;
    {
      const unlocked gap(l, mutex());
      out = map_out(v.taken, access_in(v.was));
    }
    if (out) break;
    give_back_held(v.taken, v.was);
    constexpr int attempts = 8;  // who finds no frame waits and looks again
    if (attempt == attempts) return false;
  }
  assert(!v.taken->dirty.load(std::memory_order_relaxed) && !v.taken->pins);  // only clean blocks leave
  count(*v.taken->segment, &counters::evictions);
  count(*v.taken->segment, &counters::bytes_evicted, v.taken->cls->bytes);
  v.taken->segment->past.evicted();
  trace.note(traced::evicted, v.taken->segment->traced_as, v.taken->block);
  release(v.taken);
  return true;
}

bool resident_set::reserve(lock_type& l, std::uint64_t bytes) noexcept {
  while (!pool_.reserve(bytes))
    if (!evict(l, nullptr, {})) return false;
  return true;
}

// The longest-standing clean block that nobody is busy with, owned and out of its queue; not one that
// must stay; of `only` if given.  Active blocks are taken only where no inactive one is
// left that could be written and then taken.
resident_set::victim resident_set::take_clean_victim(const segment_state* only, kept keep) noexcept {
  std::array<const frame*, frame_needs::blocks> stay;
  std::size_t n = 0;
  const auto keep_from = [&](const frame* f) OOC_REQUIRES(pager_mutex) {
    // A block that nobody has asked for yet does not push out one that somebody has asked for.
    const auto is_last_pinned = [&](const segment_state* s) OOC_REQUIRES(pager_mutex) {
      return keep.pinned_last && s->pinned_blocks == 0 &&
             std::none_of(stay.begin(), stay.begin() + n, [s](const frame* other) { return other->segment == s; });
    };
    for (; f && n < keep.latest; f = f->prev)
      if (f != keep.written && !f->past.read_ahead && (!only || f->segment == only) &&
          (!f->segment->options.pinned_only || is_last_pinned(f->segment)))
        stay[n++] = f;
  };
  keep_from(order_.newest_active());
  keep_from(order_.newest_inactive());
  const auto take = [&](frame* f, std::initializer_list<block_state> states) OOC_REQUIRES(pager_mutex) -> victim {
    if (f->dirty.load(std::memory_order_relaxed) || (only && f->segment != only) ||
        std::find(stay.begin(), stay.begin() + n, f) != stay.begin() + n)
      return {};
    block& b = f->segment->at(f->block);
    for (block_state s : states) {
      if (!b.try_take(s)) continue;
      // Its last owner may have made it dirty between the look above and now.
      if (f->dirty.load(std::memory_order_relaxed)) {
        b.publish(s);
        return {};
      }
      order_.forget(f);
      return {f, s};
    }
    return {};
  };
  bool others_later = false;
  for (frame* f = order_.oldest(); f; f = f->next) {
    if (victim v = take(f, {block_state::ready, block_state::inactive, block_state::ro}); v.taken) return v;
    others_later |= f->dirty.load(std::memory_order_relaxed) && !f->failed;
  }
  if (others_later && !only) return {};
  for (frame* f = order_.oldest_active(); f; f = f->next)  // a promise has taken the access to some of them
    if (victim v = take(f, {block_state::ready, block_state::inactive, block_state::ro}); v.taken) return v;
  return {};
}

}  // namespace ooc::detail
