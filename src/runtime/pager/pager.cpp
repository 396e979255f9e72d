#include "runtime/pager/pager.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <vector>

#include "runtime/pager/fault_handler.hpp"
#include "runtime/pager/mapping_choice.hpp"
#include "runtime/pager/process_end.hpp"
#include "runtime/pager/signals.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

namespace {

void trace_opening(resident_set& memory, segment_state& s) noexcept {
  if (!memory.trace.on()) return;
  s.traced_as = memory.trace.number_of_next();
  const segment_options& o = s.parent ? s.parent->options : s.options;
  const auto block_bytes = static_cast<std::uint32_t>(s.block_bytes());
  memory.trace.note(traced::opened, s.traced_as, s.blocks * s.block_bytes(), block_bytes, s.parent != nullptr);
  memory.trace.note(traced::shape, s.traced_as, o.row_bytes, static_cast<std::uint32_t>(o.element_bytes));
}

}  // namespace

pager::pager(const runtime_options& o)
    : state_(memory_budget::checked(o).memory, make_mappings(o)),
      writer_(state_),
      grains_(state_, writer_),
      loader_(state_, writer_, grains_),
      ahead_(state_, loader_, writer_, grains_, o.read_ahead),
      faults_(state_, grains_, loader_, o.hints),
      budget_(state_, o, [this](unique_lock& l) OOC_REQUIRES(pager_mutex) { return writer_.make_room(l); }),
      pins_(state_, budget_, ahead_, faults_, grains_),
      dropper_(state_),
      relief_(state_, writer_, o.on_fatal),
      service_(state_, loader_, ahead_, writer_, relief_),
      report_(state_) {
  if (const char* const file = std::getenv("OOC_TRACE"); file && *file)
    state_.memory.trace.record(file, state_.memory.pool().budget());
  if (auto* const m = dynamic_cast<userfault_mapping*>(&state_.memory.mapping()))
    threads_ = std::make_unique<fault_threads>(*m);
  try {
    fault_handler::attach(*this, !threads_);
    if (threads_) threads_->start();
  } catch (...) {
    fault_handler::detach(*this);
    throw;
  }
  service_.start();
}

pager::~pager() {
  report_.end();
  fault_handler::detach(*this);
  if (threads_) threads_->stop();
  service_.stop();
}

void pager::account_store(const std::shared_ptr<const void>& store, std::uint64_t staging_bytes) {
  if (budget_.account_store(store, staging_bytes)) process_end::write_back_at_exit();
}

void pager::count_direct(std::uint64_t read, std::uint64_t written) noexcept {
  counters::add(state_.memory.all_counts.bytes_read, read);
  counters::add(state_.memory.all_counts.bytes_written, written);
}

std::uint64_t pager::addresses_for_frames(std::uint64_t block_bytes, bool in_grains) const noexcept {
  guarded_lock g(state_.mutex());
  const frame_pool& pool = state_.memory.pool();
  return pool.addresses_for(block_bytes, false) + (in_grains ? pool.addresses_for(grain_bytes, true) : 0);
}

// Grains come before their segment: what is written of them may be handed over to a block, which is then
// written after them.
void pager::add(segment_state& s) {
  throw_if([&]() -> failure {
    guarded_lock g(state_.mutex());
    if (failure f = budget_.check_needs_of(s)) return f;
    frame_pool& pool = state_.memory.pool();
    s.cls = &pool.class_for(s.block_bytes());
    if (s.grains) {
      s.grains->cls = &pool.class_for_grains(s.grains->block_bytes(), *state_.memory.mapping_of_grains());
      s.grains->past.expect_columns_of(s.options.element_bytes);
      state_.segments.push_back(s.grains);
      trace_opening(state_.memory, *s.grains);
    }
    state_.segments.push_back(&s);
    trace_opening(state_.memory, s);
    state_.check_invariants();
    return {};
  }());
  try {
    fault_handler::add_range(s);
    try {
      state_.memory.mapping().open_range(s, 0, s.blocks * s.block_bytes());
      if (s.grains && grains_.apart()) state_.memory.mapping_of_grains()->open_range(s, 0, s.reach);
    } catch (...) {
      fault_handler::remove_range(s);
      throw;
    }
  } catch (...) {
    guarded_lock g(state_.mutex());
    std::erase(state_.segments, s.grains);
    std::erase(state_.segments, &s);
    throw;
  }
}

failure pager::writeback(segment_state& s, std::span<const block_range> which) {
  failure of_grains;
  if (s.grains) {
    std::vector<block_range> fine;
    for (const block_range& r : which) fine.push_back(s.grains_of(r));
    of_grains = writer_.writeback(*s.grains, fine);
  }
  const failure of_blocks = writer_.writeback(s, which);
  return of_grains ? of_grains : of_blocks;
}

segment::invalidated pager::invalidate(segment_state& s, std::span<const block_range> which, bool discard) {
  if (s.grains) {
    std::vector<block_range> fine;
    for (const block_range& r : which) fine.push_back(s.grains_of(r));
    const auto r = dropper_.invalidate(*s.grains, fine, discard);
    if (r != segment::invalidated::done) return r;
  }
  return dropper_.invalidate(s, which, discard);
}

failure pager::promise(segment_state& s, std::span<const block_range> which) {
  if (failure f = grains_.leave(s, which)) return f;
  dropper_.promise(s, which);
  return {};
}

bool pager::on_signal(segment_state& s, std::uint64_t place, touch t) noexcept {
  if (!threads_) return faults_.on_fault(s, place, t);
  if (t == touch::write && !s.may_write(place / s.block_bytes())) return false;
  std::byte* const page = s.base + place / page_bytes * page_bytes;
  static_cast<userfault_mapping&>(state_.memory.mapping()).lift_fences(page, page_bytes);
  return true;
}

void pager::bring_in(segment_state& s, std::uint64_t place, touch t) noexcept {
  if (!threads_) return;  // the touch itself does
  const signals_blocked no_signals;
  faults_.on_fault(s, place, t);
}

pager::arrivals_held_off::arrivals_held_off(pager& p, segment_state& s, block_index from) noexcept
    : pager_(p), segment_(s) {
  set(from);
  for (block_index i = from; i < s.blocks;) {
    const std::uint32_t word = s.at(i).word.load(std::memory_order_acquire);
    if (state_of(word) == block_state::busy)
      s.at(i).wait(word, false);
    else
      ++i;
  }
}

void pager::arrivals_held_off::set(block_index from) noexcept {
  const guarded_lock l(pager_.state_.mutex());
  segment_.held_off = from;
  if (!segment_.grains) return;
  const std::uint64_t n = segment_.grains->grains_in_block;
  segment_.grains->held_off = from > ~block_index{0} / n ? ~block_index{0} : from * n;
}

void pager::resize_range(segment_state& s, std::uint64_t blocks, std::uint64_t bytes) {
  const std::uint64_t before = s.blocks * s.block_bytes(), after = blocks * s.block_bytes();
  const std::uint64_t reached = s.reach;
  // A block that ends elsewhere from now on is not mapped: what the mapping keeps of the part that it had goes.
  const std::uint64_t edge = std::min(reached, bytes ? bytes : after) / s.block_bytes() * s.block_bytes();
  if (edge < std::min(before, after)) {
    state_.memory.mapping().close_range(s, edge, edge + s.block_bytes());
    state_.memory.mapping().open_range(s, edge, edge + s.block_bytes());
  }
  if (after > before) state_.memory.mapping().open_range(s, before, after);
  s.set_blocks(blocks, bytes);
  const std::uint64_t reach = s.reach;
  if (s.grains) s.grains->set_blocks(reach / s.grains->block_bytes(), reach);
  if (s.grains && grains_.apart()) {
    block_mapping& m = *state_.memory.mapping_of_grains();
    if (reach > reached) m.open_range(s, reached, reach);
    if (reach < reached) m.close_range(s, reach, reached);
  }
  if (after < before) state_.memory.mapping().close_range(s, after, before);
}

void pager::remove(segment_state& s) {
  fault_handler::await_services(s);
  if (s.grains) drop(*s.grains);
  drop(s);  // a block that a grain was late for gives the table of its grains back here
  {
    const guarded_lock l(state_.mutex());
    state_.usage.closed(s);
    if (s.grains) state_.memory.tables().forget(*s.grains);
  }
  if (s.grains && grains_.apart()) state_.memory.mapping_of_grains()->close_range(s, 0, s.reach);
  state_.memory.mapping().close_range(s, 0, s.blocks * s.block_bytes());
}

void pager::drop(segment_state& s) {
  guarded_lock g(state_.mutex());
  std::erase(state_.segments, &s);
  state_.memory.trace.note(traced::closed, s.traced_as, 0);
  state_.changed.wait(g, [&]() OOC_REQUIRES(pager_mutex) { return s.writers_at_end == 0; });
  budget_.forget(s);
  state_.waiters.forget(s);
  state_.events.forget(s);
  state_.changed.wait(g, [&]() OOC_REQUIRES(pager_mutex) { return s.transfers == 0 && !service_.serves(s); });
  dropper_.drop_all(g, s);
  state_.waiters.made_evictable();
  state_.changed.wait(g, [&]() OOC_REQUIRES(pager_mutex) { return s.calls == 0; });
  assert(s.transfers == 0 && !s.resident && s.resident_count == 0 && s.dirty == 0);
  state_.check_invariants();
}

void pager::end_owners() noexcept {
  for (;;) {
    const std::function<void()>* end = nullptr;
    {
      guarded_lock g(state_.mutex());
      for (const segment_state* s : state_.segments)
        if (s->options.end_owner) {
          end = &s->options.end_owner;
          break;
        }
    }
    if (!end) return;
    (*end)();  // takes its segment off the list
  }
}

void pager::mark_dirty_as_written(segment_state& s) {
  guarded_lock g(state_.mutex());
  for (frame* f = s.resident; f; f = f->segment_next)
    if (f->dirty.load(std::memory_order_relaxed)) s.at(f->block).written = 1;
  if (!s.grains) return;
  for (frame* f = s.grains->resident; f; f = f->segment_next)
    if (f->dirty.load(std::memory_order_relaxed)) s.grains->block_of(f->block).written = 1;
}

void pager::advise(segment_state& s, access_pattern p) {
  guarded_lock g(state_.mutex());
  s.past.advise(p);
  if (s.grains) s.grains->past.advise(p);
}

void pager::set_read_ahead(segment_state& s, std::uint64_t bytes) {
  guarded_lock g(state_.mutex());
  s.ahead_bytes = bytes;
}

void pager::set_part(segment_state& s, const segment_part& part) {
  guarded_lock g(state_.mutex());
  s.options.part = part;
  budget_.recount_pins(s);  // which blocks have twins may have changed
}

}  // namespace ooc::detail
