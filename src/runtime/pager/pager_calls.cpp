// The pager's construction and the calls of segments other than writeback.
#include <algorithm>
#include <cassert>
#include <string>

#include "runtime/pager/fault_handler.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/process_end.hpp"
#include "runtime/pager/signals.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

namespace {

constexpr std::uint64_t smallest_budget = 8 * page_bytes;

std::uint64_t choose_block(const runtime_options& o) {
  if (o.block) return o.block;
  std::uint64_t b = std::uint64_t{2} << 20;
  while (b > page_bytes && b * 32 > o.memory) b /= 2;
  return b;
}

void check(const runtime_options& o) {
  if (o.memory < smallest_budget)
    throw usage_error(errc::budget_too_small, "a budget of " + std::to_string(o.memory) +
                                                  " bytes is too small: the least is " +
                                                  std::to_string(smallest_budget) + " bytes");
  if (o.block % page_bytes)
    throw usage_error(errc::invalid_request, "a block of " + std::to_string(o.block) +
                                                 " bytes is not a multiple of 4096 bytes");
}

const runtime_options& checked(const runtime_options& o) {
  check(o);
  return o;
}

}  // namespace

pager::pager(const runtime_options& o)
    : memory_(checked(o).memory),
      on_fatal_(o.on_fatal),
      default_block_(choose_block(o)),
      block_chosen_(o.block != 0),
      ahead_option_(o.read_ahead),
      ring_(ring_size) {
  fault_handler::attach(*this);
  signals_blocked inherited_by_the_thread;
  service_ = std::thread([this] { serve(); });
}

pager::~pager() {
  fault_handler::detach(*this);
  stopping_ = true;
  wake();
  service_.join();
}

std::uint64_t pager::budget() const noexcept {
  guarded_lock g(memory_.mutex());
  return memory_.pool().budget();
}

runtime_stats pager::stats() const {
  const counters& c = memory_.count();
  runtime_stats r;
  const auto get = [](const std::atomic<std::uint64_t>& a) {
    return a.load(std::memory_order_relaxed);
  };
  r.hits = get(c.hits);
  r.faults = get(c.faults);
  r.soft_faults = get(c.soft_faults);
  r.write_faults = get(c.write_faults);
  r.evictions = get(c.evictions);
  r.read_ahead_blocks = get(c.read_ahead_blocks);
  r.read_ahead_hits = get(c.read_ahead_hits);
  r.read_ahead_waste = get(c.read_ahead_waste);
  r.loads_avoided = get(c.loads_avoided);
  r.bytes_read = get(c.bytes_read);
  r.bytes_reread = get(c.bytes_reread);
  r.blocks_invalidated = get(c.blocks_invalidated);
  r.bytes_invalidated = get(c.bytes_invalidated);
  r.bytes_written = get(c.bytes_written);
  r.read_wait_ns = get(c.read_wait_ns);
  r.write_wait_ns = get(c.write_wait_ns);
  guarded_lock g(memory_.mutex());
  r.budget_bytes = memory_.pool().budget();
  r.resident_bytes = memory_.pool().used();
  return r;
}

void pager::account_store(const std::shared_ptr<const void>& store, std::uint64_t staging_bytes) {
  guarded_lock g(memory_.mutex());
  std::erase_if(stores_, [&](const accounted_store& a) OOC_REQUIRES(memory_.mutex()) {
    const bool gone = a.store.expired();
    if (gone) memory_.pool().unreserve(a.bytes);
    return gone;
  });
  for (const accounted_store& a : stores_)
    if (!a.store.owner_before(store) && !store.owner_before(a.store)) return;
  if (!reserve_for_store(g, staging_bytes))
    throw usage_error(errc::budget_too_small,
                      "the transfer buffers of the store take " + std::to_string(staging_bytes) +
                          " bytes, and the budget has only " +
                          std::to_string(memory_.pool().budget()) +
                          " left: give the runtime more memory, or open the store with fewer "
                          "workers or less staging");
  stores_.push_back({store, staging_bytes});
  process_end::write_back_at_exit();
}

pager::reservation pager::reserve(std::uint64_t bytes, const std::string& what) {
  guarded_lock g(memory_.mutex());
  if (!reserve_for_store(g, bytes))
    throw usage_error(errc::budget_too_small,
                      what + " needs " + std::to_string(bytes) + " bytes, and the budget has only " +
                          std::to_string(memory_.pool().budget()) +
                          " left, pinned blocks included: give the runtime more memory");
  return {*this, bytes};
}

std::uint64_t pager::spare() const noexcept {
  guarded_lock g(memory_.mutex());
  const std::uint64_t held = pinned_bytes_ + needs().bytes();
  const std::uint64_t budget = memory_.pool().budget();
  return budget > held ? budget - held : 0;
}

void pager::take_back(std::uint64_t bytes) noexcept {
  guarded_lock g(memory_.mutex());
  memory_.pool().unreserve(bytes);
  made_evictable();
}

bool pager::reserve_for_store(lock_type& l, std::uint64_t bytes) {
  for (;;) {
    const std::uint64_t budget = memory_.pool().budget();
    if (bytes > budget || pinned_bytes_ + needs().bytes() > budget - bytes) return false;
    if (memory_.reserve(l, bytes)) return true;
    // What is left is modified, or on its way.
    if (!clean_oldest(l, nullptr) && transfers_ == 0) return false;
    if (transfers_ > 0) changed_.wait(l);
  }
}

// --- segments
// --------------------------------------------------------------------------------------

void pager::add(segment_state& s) {
  {
    guarded_lock g(memory_.mutex());
    check_needs_of(s);
    s.cls = &memory_.pool().class_for(s.options.block_bytes);
    segments_.push_back(&s);
  }
  try {
    fault_handler::add_range(s);
  } catch (...) {
    guarded_lock g(memory_.mutex());
    std::erase(segments_, &s);
    throw;
  }
}

void pager::remove(segment_state& s) {
  guarded_lock g(memory_.mutex());
  std::erase(segments_, &s);
  changed_.wait(g, [&] { return s.writers_at_end == 0; });
  pinned_bytes_ -= s.pinned_frames * s.block_bytes();
  pinned_frames_ -= s.pinned_frames;
  if (starved_.segment == &s) starved_ = {};
  std::erase_if(stalled_, [&](const event& e) { return e.segment == &s; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ring_count_; ++i) {
    const event e = ring_[(ring_first_ + i) % ring_size];
    if (e.segment != &s) ring_[(ring_first_ + kept++) % ring_size] = e;
  }
  ring_count_ = kept;
  changed_.wait(g, [&]() OOC_REQUIRES(memory_.mutex()) {
    return s.transfers == 0 && serving_ != &s;
  });
  while (frame* f = s.resident) {
    block& b = s.at(f->block);
    const block_state state = b.state();
    if (is_transient(state)) {  // another thread lets it age or evicts it
      g.unlock();
      std::this_thread::yield();
      g.lock();
      continue;
    }
    if (!b.try_take(state)) continue;
    memory_.order().forget(f);
    if (state != block_state::ready) {
      const unlocked gap(g, memory_.mutex());
      memory_.map_out(f, state != block_state::inactive);
    }
    memory_.release(f);
  }
  made_evictable();
  changed_.wait(g, [&] { return s.calls == 0; });
}

void pager::end_owners() noexcept {
  for (;;) {
    const std::function<void()>* end = nullptr;
    {
      guarded_lock g(memory_.mutex());
      for (const segment_state* s : segments_)
        if (s->options.end_owner) {
          end = &s->options.end_owner;
          break;
        }
    }
    if (!end) return;
    (*end)();  // takes its segment off the list
  }
}

segment::invalidated pager::invalidate(segment_state& s, std::span<const block_range> which,
                                       bool discard) {
  std::vector<block_index> resident;
  {
    guarded_lock g(memory_.mutex());
    for (frame* f = s.resident; f; f = f->segment_next) {
      if (!contains(which, f->block)) continue;
      if (f->pins) return segment::invalidated::pinned;
      if (!discard && f->dirty.load(std::memory_order_relaxed)) return segment::invalidated::dirty;
      resident.push_back(f->block);
    }
  }
  auto result = segment::invalidated::done;
  for (block_index b : resident)
    if (const auto r = drop(s, b, discard); r != segment::invalidated::done) result = r;
  return result;
}

// Forgets one block; one that is being loaded is dropped on arrival.  One that was pinned since
// invalidate() looked, or modified by a touch that it should have been spared, stays.
segment::invalidated pager::drop(segment_state& s, block_index index, bool discard) {
  block& b = s.at(index);
  for (;;) {
    {
      guarded_lock g(memory_.mutex());
      const block_state state = b.state();
      if (state == block_state::out || state == block_state::queued)
        return segment::invalidated::done;
      if (state == block_state::loading) {
        if (!s.frame_of(b)->stale.exchange(true)) count_invalidated(s);
        return segment::invalidated::done;
      }
      if (!is_transient(state)) {
        if (!b.try_take(state)) continue;
        frame* f = s.frame_of(b);
        if (f->copying) {
          b.publish(state);
          changed_.wait(g);
          continue;
        }
        const bool modified = !discard && f->dirty.load(std::memory_order_relaxed);
        if (f->pins || modified) {
          b.publish(state);
          return modified ? segment::invalidated::dirty : segment::invalidated::pinned;
        }
        memory_.order().forget(f);
        if (state != block_state::ready) {
          g.unlock();
          memory_.map_out(f, state != block_state::inactive);
          g.lock();
        }
        memory_.release(f);
        made_evictable();
        count_invalidated(s);
        return segment::invalidated::done;
      }
    }
    const std::uint32_t word = b.word.load(std::memory_order_acquire);
    if (is_transient(state_of(word)) && state_of(word) != block_state::loading) b.wait(word, false);
  }
}

void pager::count_invalidated(const segment_state& s) noexcept {
  counters::add(memory_.count().blocks_invalidated);
  counters::add(memory_.count().bytes_invalidated, s.block_bytes());
}

void pager::mark_dirty_as_written(segment_state& s) {
  guarded_lock g(memory_.mutex());
  for (frame* f = s.resident; f; f = f->segment_next)
    if (f->dirty.load(std::memory_order_relaxed)) s.at(f->block).written = 1;
}

void pager::advise(segment_state& s, access_pattern p) {
  guarded_lock g(memory_.mutex());
  s.streams.advise(p);
}

void pager::set_part(segment_state& s, const segment_part& part) {
  guarded_lock g(memory_.mutex());
  s.options.part = part;
  // Which blocks have twins may have changed.
  std::uint64_t frames = 0;
  for (const frame* f = s.resident; f; f = f->segment_next)
    frames += f->pins * s.frames_of(f->block);
  pinned_bytes_ += (frames - s.pinned_frames) * s.block_bytes();
  pinned_frames_ += frames - s.pinned_frames;
  s.pinned_frames = frames;
}

// A block in memory is marked where its next write will fault, so that the mark is used up by it;
// it counts if the block is evicted before.
void pager::promise(segment_state& s, std::span<const block_range> which) {
  signals_blocked no_signals;
  for (const block_range& r : which)
    for (block_index i = r.first; i < r.last; ++i) {
      // What others wrote beside the box must be there to compare with.
      if (s.twinned(i) || !s.may_write(i)) continue;
      block& b = s.at(i);
      const block_state state = b.state();
      if (state == block_state::loading) {
        lock_type l(memory_.mutex());
        if (b.state() == block_state::loading) drop_partial(s.frame_of(b));
        continue;
      }
      if (is_transient(state) || state == block_state::rw || !b.try_take(state)) continue;
      b.promised.store(1, std::memory_order_relaxed);
      frame* f = state == block_state::ready ? s.frame_of(b) : nullptr;
      if (f && f->partial) {
        lock_type l(memory_.mutex());
        memory_.release(f);
        continue;
      }
      b.publish(state);
    }
  made_evictable();
}

void pager::clear_promises(segment_state& s, std::span<const block_range> which) {
  for (const block_range& r : which)
    for (block_index b = r.first; b < r.last; ++b) s.at(b).promised = 0;
  guarded_lock g(memory_.mutex());
  for (frame *f = s.resident, *next; f; f = next) {
    next = f->segment_next;
    if (contains(which, f->block)) drop_partial(f);
  }
  made_evictable();
}

// Forgets a block that nobody has touched and that holds, or will hold, only what lay outside a
// promise.
void pager::drop_partial(frame* f) noexcept {
  block& b = f->segment->at(f->block);
  if (b.state() == block_state::loading) {
    if (f->partial) f->stale = true;
  } else if (b.try_take(block_state::ready)) {
    if (f->partial)
      memory_.release(f);
    else
      b.publish(block_state::ready);
  }
}

void pager::prefetch(segment_state& s, std::span<const block_range> which) {
  const unsigned together = std::min(s.source->fetched_together(), most_together);
  for (const block_range& r : which)
    for (block_index b = r.first; b < r.last;) {
      std::array<block_index, most_together> group;
      std::size_t n = 0;
      do {
        if (s.at(b).state() == block_state::out) group[n++] = b;
      } while (++b < r.last && b % together != 0);
      if (n == 0) continue;
      guarded_lock g(memory_.mutex());
      if (!fetch(g, s, {group.data(), n})) return;
    }
}

// --- pins
// ------------------------------------------------------------------------------------------

failure pager::pin(segment_state& s, std::span<const block_range> which, access_mode mode) {
  if (failure f = reserve_pins(s, which)) return f;
  prefetch(s, which);
  std::vector<block_range> done;  // all or nothing: what to let go of
  for (const block_range& r : which) {
    done.push_back({r.first, r.first});
    for (block_index& b = done.back().last; b < r.last; ++b) {
      failure f = pin_block(s, b, mode == access_mode::write);
      if (!f) continue;
      const block_index reached = b;
      unpin(s, done, mode);
      std::vector<block_range> rest{{reached, r.last}};
      rest.insert(rest.end(), which.begin() + static_cast<std::ptrdiff_t>(done.size()), which.end());
      guarded_lock g(memory_.mutex());
      count_pins(s, rest, -1);
      return f;
    }
  }
  return {};
}

frame_needs pager::needs() const noexcept {
  frame_needs n;
  n.add(page_bytes, false);  // arrays to come
  for (const segment_state* any : segments_)  // what is pinned of those with pins only is counted as that
    if (!any->options.pinned_only) n.add(any->block_bytes(), any->may_have_twins());
  return n;
}

// What is not there for one instruction: ", and of the budget of ...".
std::string pager::taken_text() const {
  const frame_pool& pool = memory_.pool();
  std::string text;
  if (const std::uint64_t lent = pool.whole_budget() - pool.budget())
    text += ", " + std::to_string(lent) + " serve as transfer buffers";
  if (pinned_bytes_) text += ", " + std::to_string(pinned_bytes_) + " are pinned";
  return text;
}

// An access that finds no frame ends the process: what could come to that is
// refused here.
void pager::check_needs_of(const segment_state& s) const {
  const auto needed = [&](std::uint64_t block_bytes) OOC_REQUIRES(memory_.mutex()) {
    frame_needs n = needs();
    if (s.options.pinned_only)
      n.add_pinned_only(block_bytes, s.may_have_twins());
    else
      n.add(block_bytes, s.may_have_twins());
    return pinned_bytes_ + n.bytes();
  };
  const frame_pool& pool = memory_.pool();
  const std::uint64_t budget = pool.budget();
  if (needed(s.block_bytes()) <= budget) return;
  std::uint64_t smaller = s.block_bytes() / 2 / page_bytes * page_bytes;
  while (smaller && needed(smaller) > budget) smaller = smaller / 2 / page_bytes * page_bytes;
  throw usage_error(
      errc::budget_too_small,
      "array '" + s.options.name + "': blocks of " + std::to_string(s.block_bytes()) +
          " bytes do not fit the budget of " + std::to_string(pool.whole_budget()) +
          " bytes: " + (s.options.pinned_only ? "it" : "one copy between blocks") + " needs " +
          std::to_string(needed(s.block_bytes()) - pinned_bytes_) + taken_text() +
          "; give the runtime at least " +
          std::to_string(pool.whole_budget() - budget + needed(s.block_bytes())) + " bytes of memory" +
          (smaller ? " or choose a block of at most " + std::to_string(smaller) + " bytes"
                   : std::string()));
}

std::uint64_t pager::default_block_bytes() const noexcept {
  guarded_lock g(memory_.mutex());
  std::uint64_t b = default_block_;
  const auto fits = [&]() OOC_REQUIRES(memory_.mutex()) {
    frame_needs n = needs();
    n.add(b, true);
    return pinned_bytes_ + n.bytes() <= memory_.pool().budget();
  };
  while (!block_chosen_ && b > page_bytes && !fits()) b /= 2;
  return b;
}

void pager::count_pins(segment_state& s, std::span<const block_range> which, int sign) noexcept {
  std::uint64_t blocks = 0, frames = 0;
  for (const block_range& r : which) {
    blocks += r.last - r.first;
    for (block_index b = r.first; b < r.last; ++b) frames += s.frames_of(b);
  }
  const auto by = static_cast<std::uint64_t>(sign);
  assert(sign > 0 || (s.pinned_blocks >= blocks && s.pinned_frames >= frames));
  assert(pinned_frames_ >= s.pinned_frames);
  s.pinned_blocks += by * blocks;
  s.pinned_frames += by * frames;
  pinned_frames_ += by * frames;
  pinned_bytes_ += by * frames * s.block_bytes();
}

failure pager::reserve_pins(segment_state& s, std::span<const block_range> which) {
  guarded_lock g(memory_.mutex());
  const std::uint64_t pinned_before = pinned_bytes_;
  const frame_pool& pool = memory_.pool();
  const std::uint64_t own = s.options.max_resident;
  const std::string taken = taken_text();
  count_pins(s, which, 1);
  const std::uint64_t needed = pinned_bytes_ + needs().bytes();
  std::string why;
  const std::uint64_t unpinned = s.options.pinned_only ? 0 : frame_needs::blocks;
  if (own && s.pinned_blocks + unpinned > own)
    why = "it may hold " + std::to_string(own) + " blocks (buffers) and would need " +
          std::to_string(s.pinned_blocks + unpinned) +
          (unpinned ? ", of which " + std::to_string(unpinned) + " stay free for one copy between blocks"
                    : std::string()) +
          "; pin a smaller box or give it as many buffers";
  else if (needed > pool.budget())
    why = "one copy between blocks needs " + std::to_string(needs().bytes()) +
          " more of the budget of " + std::to_string(pool.whole_budget()) + " bytes" + taken +
          "; pin a smaller box or give the runtime at least " +
          std::to_string(pool.whole_budget() - pool.budget() + needed) + " bytes of memory";
  else if (pinned_frames_ + frame_needs::frames > pool.max_frames())
    why = "the process may have " + std::to_string(pool.max_frames()) +
          " blocks in memory (vm.max_map_count / 5); pin a smaller box or choose larger blocks";
  if (why.empty()) return {};
  const std::uint64_t bytes = pinned_bytes_ - pinned_before;
  count_pins(s, which, -1);
  return {make_error_code(errc::budget_too_small),
          "array '" + s.options.name + "': cannot pin " + std::to_string(bytes) +
              " bytes" + (bytes && s.may_have_twins() ? " (twins included)" : "") + ": " + why};
}

void pager::unpin(segment_state& s, std::span<const block_range> which, access_mode mode) noexcept {
  guarded_lock g(memory_.mutex());
  for (const block_range& r : which)
    for (block_index b = r.first; b < r.last; ++b) {
      frame* f = s.frame_of(s.at(b));
      assert(f->pins > 0 && (mode != access_mode::write || f->write_pins > 0));
      if (mode == access_mode::write) --f->write_pins;
      if (--f->pins == 0) memory_.order().make_active(f);
    }
  count_pins(s, which, -1);
  made_evictable();
}

// Brings a block in, maps it with the access asked for, and pins it; or says why its load failed.
failure pager::pin_block(segment_state& s, block_index index, bool write) {
  block& b = s.at(index);
  if (s.options.note_reads && !write) b.read.store(1, std::memory_order_relaxed);
  bool waited = false;
  for (;;) {
    const std::uint32_t word = b.word.load(std::memory_order_acquire);
    const block_state state = state_of(word);
    if (state == block_state::out) {
      guarded_lock g(memory_.mutex());
      if (const auto e = s.load_errors.find(index); waited && e != s.load_errors.end()) {
        failure f = e->second;
        s.load_errors.erase(e);
        return f;
      }
      if (!b.try_take(block_state::out, block_state::queued)) continue;
      if (!post({&s, index, write ? touch::write : touch::read, true})) {
        b.publish(block_state::out);
        continue;
      }
      counters::add(memory_.count().faults);
      waited = true;
      wake();
      continue;
    }
    if (is_transient(state)) {
      if (state == block_state::queued || state == block_state::loading) waited = true;
      b.wait(word, false);
      continue;
    }
    guarded_lock g(memory_.mutex());
    if (!b.try_take(state)) continue;
    frame* f = s.frame_of(b);
    if (f->partial && !write) {
      b.promised.store(0, std::memory_order_relaxed);
      memory_.release(f);
      continue;
    }
    g.unlock();
    if (state == block_state::inactive) memory_.set_access(f, PROT_READ);
    std::uint32_t seen = 0;
    if (write && !begin_write(f, state == block_state::ready ? f->memory : s.address(index), seen)) {
      b.publish(state == block_state::inactive ? block_state::ro : state);
      wait_for_frame(seen);
      continue;
    }
    b.promised.store(0, std::memory_order_relaxed);
    f->partial = false;
    const bool writable = f->dirty.load(std::memory_order_relaxed);
    if (state == block_state::ready)
      memory_.map_in(f, writable);
    else if (writable && state != block_state::rw)
      memory_.set_access(f, PROT_READ | PROT_WRITE);
    g.lock();
    f->read_ahead = false;
    memory_.order().forget(f);
    ++f->pins;
    if (write) ++f->write_pins;
    b.publish(writable ? block_state::rw : block_state::ro);
    made_evictable();
    return {};
  }
}

}  // namespace ooc::detail
