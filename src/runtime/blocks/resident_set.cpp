#include "runtime/blocks/resident_set.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <utility>

#include "oocarray/runtime.hpp"
#include "runtime/blocks/diff.hpp"

namespace ooc::detail {

namespace {

[[maybe_unused]] bool owned(const frame* f) noexcept {
  return f->segment->at(f->block).state() == block_state::busy;
}

}  // namespace

void die(const char* what, int error) noexcept {
  char text[256];
  const int n = std::snprintf(
      text, sizeof text,
      "oocarray: %s failed (errno %d)%s; the process ends, modified blocks "
      "that were not written back are lost\n",
      what, error, error == ENOMEM ? ": raise vm.max_map_count or use larger blocks" : "");
  if (n > 0 && ::write(2, text, static_cast<std::size_t>(n)) < 0) { /* nobody left to tell */
  }
  ::_exit(fatal_exit_status);
}

// --- moving pages
// ----------------------------------------------------------------------------------

void resident_set::map_in(frame* f, bool writable) noexcept {
  assert(owned(f));
  const std::size_t n = f->cls->bytes;
  std::byte* to = f->segment->address(f->block);
  if (!writable && !sys::protect(f->memory, n, PROT_READ)) die("mprotect of a frame", errno);
  if (!sys::move_pages(f->memory, to, n)) die("mremap of a frame", errno);
  if (const std::size_t used = f->segment->mapped_bytes(f->block);
      used < n && !sys::protect(to + used, n - used, PROT_NONE))
    die("mprotect of the pages past an array's end", errno);
}

// The pages past the end have no access, so all of the block is one mapping again before it moves.
// The last step replaces the block's mapping by a piece of the reservation, so that it merges with
// its neighbours: otherwise every block ever touched would keep a mapping of its own.
void resident_set::map_out(frame* f, bool accessible) noexcept {
  assert(owned(f));
  const std::size_t n = f->cls->bytes;
  std::byte* from = f->segment->address(f->block);
  if (accessible && !sys::protect(from, n, PROT_NONE)) die("mprotect of a block", errno);
  if (!sys::move_pages(from, f->memory, n)) die("mremap of a block", errno);
  if (!sys::protect(f->memory, n, PROT_READ | PROT_WRITE)) die("mprotect of a frame", errno);
  if (!sys::map(from, n, PROT_NONE, sys::reserve_flags | MAP_FIXED)) die("mmap of a block", errno);
}

void resident_set::set_access(frame* f, int protection) noexcept {
  assert(owned(f));
  if (!sys::protect(f->segment->address(f->block), f->segment->mapped_bytes(f->block), protection))
    die("mprotect of a block", errno);
}

// --- frames
// ----------------------------------------------------------------------------------------

void resident_set::link(frame* f, segment_state& s) noexcept {
  assert(!f->segment && f->list == frame_list::none && f->cls == s.cls);
  f->segment = &s;
  f->segment_prev = nullptr;
  f->segment_next = s.resident;
  if (s.resident) s.resident->segment_prev = f;
  s.resident = f;
  ++s.resident_count;
  f->pins = f->write_pins = 0;
  f->twin = nullptr;
  f->doubt = nullptr;
  f->copying = f->partial = f->read_ahead = f->swept = false;
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
}

void resident_set::release(frame* f) noexcept {
  segment_state& s = *f->segment;
  block& b = s.at(f->block);
  assert(s.frame_of(b) == f && is_transient(b.state()));
  if (f->read_ahead) counters::add(counters_.read_ahead_waste);
  mark_clean(f);
  order_.forget(f);
  unlink(f);
  pool_.give_back(f);
  b.publish(block_state::out);
}

void resident_set::mark_dirty(frame* f) noexcept {
  if (f->dirty.exchange(true, std::memory_order_relaxed)) return;
  f->segment->dirty.fetch_add(1, std::memory_order_relaxed);
  f->segment->at(f->block).written.store(1, std::memory_order_relaxed);
}

void resident_set::mark_clean(frame* f) noexcept {
  if (f->dirty.exchange(false, std::memory_order_relaxed))
    f->segment->dirty.fetch_sub(1, std::memory_order_relaxed);
  if (f->twin) pool_.give_back(std::exchange(f->twin, nullptr));
  delete std::exchange(f->doubt, nullptr);  // of dirty blocks only: never in a fault handler
  f->failed.store(false, std::memory_order_relaxed);
}

// --- replacement
// -----------------------------------------------------------------------------------

frame* resident_set::obtain_linked(lock_type& l, segment_state& s, std::size_t keep) noexcept {
  frame* f = obtain(l, s, true, keep);
  if (f) link(f, s);
  return f;
}

frame* resident_set::obtain(lock_type& l, segment_state& s, bool limited,
                            std::size_t keep) noexcept {
  age(l);
  for (;;) {
    const bool own = limited && s.options.max_resident && s.resident_count >= s.options.max_resident;
    if (!own) {
      if (frame* f = pool_.take(*s.cls)) return f;
    }
    if (!evict(l, own ? &s : nullptr, keep)) return nullptr;
  }
}

bool resident_set::evict(lock_type& l, const segment_state* only, std::size_t keep) noexcept {
  const victim v = take_clean_victim(only, keep);
  if (!v.taken) return false;
  if (v.was != block_state::ready) {
    const unlocked gap(l, mutex());
    map_out(v.taken, v.was != block_state::inactive);
  }
  assert(!v.taken->dirty.load(std::memory_order_relaxed) && !v.taken->pins);  // only clean blocks leave
  counters::add(counters_.evictions);
  release(v.taken);
  return true;
}

bool resident_set::reserve(lock_type& l, std::uint64_t bytes) noexcept {
  while (!pool_.reserve(bytes))
    if (!evict(l, nullptr, 0)) return false;
  return true;
}

// The longest-standing clean block that nobody is busy with, owned and out of its queue; not one of
// the `keep` that came last, of `only` if given.  Young blocks are taken only where no inactive one is
// left that could be written and then taken.
resident_set::victim resident_set::take_clean_victim(const segment_state* only,
                                                     std::size_t keep) noexcept {
  std::array<const frame*, frame_needs::blocks> kept;
  std::size_t n = 0;
  const auto keep_from = [&](const frame* f) OOC_REQUIRES(pager_mutex) {
    // What nobody has asked for yet does not push out what somebody has.
    for (; f && n < keep; f = f->prev)
      if (!f->read_ahead && !f->segment->options.pinned_only && (!only || f->segment == only))
        kept[n++] = f;
  };
  keep_from(order_.newest_young());
  keep_from(order_.newest_old());
  const auto take = [&](frame* f, std::initializer_list<block_state> states)
                        OOC_REQUIRES(pager_mutex) -> victim {
    if (f->dirty.load(std::memory_order_relaxed) || (only && f->segment != only) ||
        std::find(kept.begin(), kept.begin() + n, f) != kept.begin() + n)
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
    if (victim v = take(f, {block_state::ready, block_state::inactive}); v.taken) return v;
    others_later |= f->dirty.load(std::memory_order_relaxed) && !f->failed;
  }
  if (others_later && !only) return {};
  for (frame* f = order_.oldest_active(); f; f = f->next)
    if (victim v = take(f, {block_state::ready, block_state::ro}); v.taken) return v;
  return {};
}

void resident_set::age(lock_type& l) noexcept {
  for (int i = 0; i < replacement::aged_per_miss && order_.wants_ageing(); ++i)
    if (!age_one(l)) return;
}

bool resident_set::age_one(lock_type& l) noexcept {
  constexpr int attempts = 8;
  for (int i = 0; i < attempts; ++i) {
    frame* f = order_.oldest_active();
    if (!f) return false;
    block& b = f->segment->at(f->block);
    if (b.try_take(block_state::ro) || b.try_take(block_state::rw)) {
      order_.forget(f);
      {
        const unlocked gap(l, mutex());
        set_access(f, PROT_NONE);
      }
      order_.make_inactive(f);
      b.publish(block_state::inactive);
      return true;
    }
    if (b.state() == block_state::ready) {  // not mapped: nothing to take away
      order_.make_inactive(f);
      return true;
    }
    order_.make_active(f);  // somebody is busy with it
  }
  return false;
}

}  // namespace ooc::detail
