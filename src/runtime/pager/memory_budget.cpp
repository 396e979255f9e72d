#include "runtime/pager/memory_budget.hpp"

#include <algorithm>
#include <cassert>

#include "runtime/pager/signals.hpp"
#include "storage/base/invariants.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

namespace {

const std::uint64_t smallest_budget = 8 * page_bytes;

std::uint64_t choose_block(const runtime_options& o) {
  if (o.block) return in_whole_pages(o.block);
  std::uint64_t b = std::uint64_t{2} << 20;
  while (b > page_bytes && b * 32 > o.memory) b /= 2;
  return b;
}

std::uint64_t bytes_of_pin(const segment_state& s) noexcept {
  return s.parent ? grain_tables::most_for_a_grain() : s.block_bytes();
}

}  // namespace

const runtime_options& memory_budget::checked(const runtime_options& o) {
  if (o.memory < smallest_budget)
    throw usage_error(errc::budget_too_small, "a budget of " + std::to_string(o.memory) +
                                                  " bytes is too small: the least is " +
                                                  std::to_string(smallest_budget) + " bytes");
  if (const std::string why = wrong_page_setting(); !why.empty()) throw usage_error(errc::invalid_request, why);
  if (o.block % block_step)
    throw usage_error(errc::invalid_request,
                      "a block of " + std::to_string(o.block) + " bytes is not a multiple of 4096 bytes");
  return o;
}

memory_budget::memory_budget(pager_state& state, const runtime_options& o, room_maker make_room)
    : state_(state), make_room_(std::move(make_room)), default_block_(choose_block(o)), block_chosen_(o.block != 0) {}

#ifndef NDEBUG
void memory_budget::check_invariants() const noexcept {
  std::uint64_t frames = 0, bytes = 0;
  for (const segment_state* s : state_.segments) {
    frames += s->pinned_frames;
    bytes += s->pinned_frames * bytes_of_pin(*s);
  }
  assert(frames <= pinned_frames_ && bytes <= pinned_bytes_);  // a segment that closes is in the list no more
  assert(pinned_bytes_ + needs().bytes() <= state_.memory.pool().budget());
}
#endif

std::uint64_t memory_budget::budget() noexcept {
  guarded_lock g(state_.mutex());
  forget_closed_stores();
  return state_.memory.pool().budget();
}

std::uint64_t memory_budget::default_block_bytes() const noexcept {
  guarded_lock g(state_.mutex());
  std::uint64_t b = default_block_;
  const auto fits = [&]() OOC_REQUIRES(pager_mutex) {
    frame_needs n = needs();
    n.add(b, true);
    return pinned_bytes_ + n.bytes() <= state_.memory.pool().budget();
  };
  while (!block_chosen_ && b > page_bytes && !fits()) b /= 2;
  return b;
}

void memory_budget::forget_closed_stores() noexcept {
  std::erase_if(stores_, [&](const accounted_store& a) OOC_REQUIRES(pager_mutex) {
    const bool gone = a.store.expired();
    if (gone) state_.memory.pool().unreserve(a.bytes);
    return gone;
  });
}

bool memory_budget::account_store(const std::shared_ptr<const void>& store, std::uint64_t staging_bytes) {
  const auto [added, refusal] = try_to_account(store, staging_bytes);
  throw_if(refusal);
  return added;
}

std::pair<bool, failure> memory_budget::try_to_account(const std::shared_ptr<const void>& store,
                                                       std::uint64_t staging_bytes) {
  guarded_lock g(state_.mutex());
  const invariants_hold at_end(*this);
  forget_closed_stores();
  for (const accounted_store& a : stores_)
    if (!a.store.owner_before(store) && !store.owner_before(a.store)) return {false, {}};
  if (!take(g, staging_bytes))
    return {false,
            {make_error_code(errc::budget_too_small),
             "the transfer buffers of the store take " + std::to_string(staging_bytes) +
                 " bytes, and the budget has only " + std::to_string(state_.memory.pool().budget()) +
                 " left: give the runtime more memory, or open the store with fewer workers or less "
                 "staging"}};
  stores_.push_back({store, staging_bytes});
  return {true, {}};
}

memory_budget::reservation memory_budget::reserve(std::uint64_t bytes, const std::string& what) {
  failure refusal;
  {
    guarded_lock g(state_.mutex());
    const invariants_hold at_end(*this);
    if (!take(g, bytes)) refusal = refused_loan(bytes, what);
  }
  throw_if(refusal);
  return {*this, bytes};
}

memory_budget::reservation memory_budget::lend(std::uint64_t least, std::uint64_t most, bool may_wait,
                                               const std::string& what) {
  failure refusal;
  const std::uint64_t bytes = try_to_lend(least, most, may_wait, what, refusal);
  throw_if(refusal);
  return {*this, bytes, true};
}

std::uint64_t memory_budget::try_to_lend(std::uint64_t least, std::uint64_t most, bool may_wait,
                                         const std::string& what, failure& refusal) {
  guarded_lock g(state_.mutex());
  const invariants_hold at_end(*this);
  for (;;) {
    const std::uint64_t half = unspoken_for() / 2 / page_bytes * page_bytes;
    for (const std::uint64_t bytes : {std::clamp(half, least, std::max(least, most)), least})
      if (take(g, bytes)) {
        ++loans_;
        return bytes;
      }
    if (!may_wait || loans_ == 0) {
      refusal = refused_loan(least, what);
      return 0;
    }
    state_.changed.wait(g);
  }
}

failure memory_budget::refused_loan(std::uint64_t bytes, const std::string& what) const {
  return {make_error_code(errc::budget_too_small),
          what + " needs " + std::to_string(bytes) + " bytes, and the budget can spare only " +
              std::to_string(unspoken_for()) +
              " beside what is pinned and what element accesses need: give the runtime more memory"};
}

std::uint64_t memory_budget::spare() const noexcept {
  guarded_lock g(state_.mutex());
  return unspoken_for();
}

std::uint64_t memory_budget::unspoken_for() const noexcept {
  const std::uint64_t held = pinned_bytes_ + needs().bytes();
  const std::uint64_t budget = state_.memory.pool().budget();
  return budget > held ? budget - held : 0;
}

void memory_budget::take_back(std::uint64_t bytes, bool lent) noexcept {
  guarded_lock g(state_.mutex());
  const invariants_hold at_end(*this);
  if (lent) {
    assert(loans_ > 0);
    --loans_;
    state_.changed.notify_all();
  }
  state_.memory.pool().unreserve(bytes);
  state_.waiters.made_evictable();
}

bool memory_budget::take(unique_lock& l, std::uint64_t bytes) {
  for (;;) {
    const std::uint32_t seen = state_.waiters.look();
    const std::uint64_t budget = state_.memory.pool().budget();
    if (bytes > budget || pinned_bytes_ + needs().bytes() > budget - bytes) return false;
    if (state_.memory.reserve(l, bytes)) {
      // Without the mutex meanwhile: others may have been promised the same.
      if (pinned_bytes_ + needs().bytes() <= state_.memory.pool().budget()) return true;
      state_.memory.pool().unreserve(bytes);
      state_.waiters.made_evictable();
      return false;
    }
    if (make_room_(l) || state_.waiters.look() != seen || wait_for_owner(l)) continue;
    return false;  // what is left is modified and cannot be written
  }
}

// Other threads may own, for a moment, all that could make room.  False where nobody owns a block.
bool memory_budget::wait_for_owner(unique_lock& l) {
  for (segment_state* s : state_.segments)
    for (const frame* f = s->resident; f; f = f->segment_next) {
      block& b = s->at(f->block);
      const std::uint32_t word = b.word.load(std::memory_order_acquire);
      if (state_of(word) != block_state::busy) continue;
      state_.call_begins(*s);  // it stays
      {
        const unlocked gap(l, state_.mutex());
        b.wait(word, false);
      }
      state_.call_ends(*s);
      return true;
    }
  return false;
}

frame_needs memory_budget::needs() const noexcept {
  frame_needs n;
  n.add(page_bytes, false);  // arrays to come
  // Segments with pins only are left out: their blocks are counted as pinned memory.
  for (const segment_state* any : state_.segments)
    if (!any->options.pinned_only) n.add(any->block_bytes(), any->may_have_twins());
  return n;
}

// The part of the budget that is not there for one instruction: ", and of the budget of ...".
std::string memory_budget::taken_text() const {
  const frame_pool& pool = state_.memory.pool();
  std::string text;
  if (const std::uint64_t lent = pool.whole_budget() - pool.budget())
    text += ", " + std::to_string(lent) + " serve as transfer buffers";
  if (pinned_bytes_) text += ", " + std::to_string(pinned_bytes_) + " are pinned";
  return text;
}

// An access that finds no frame ends the process: what could come to that is refused here.
failure memory_budget::check_needs_of(const segment_state& s) const {
  const auto needed = [&](std::uint64_t block_bytes) OOC_REQUIRES(pager_mutex) {
    frame_needs n = needs();
    if (s.options.pinned_only)
      n.add_pinned_only(block_bytes, s.may_have_twins());
    else
      n.add(block_bytes, s.may_have_twins());
    return pinned_bytes_ + n.bytes();
  };
  const frame_pool& pool = state_.memory.pool();
  const std::uint64_t budget = pool.budget();
  if (needed(s.block_bytes()) <= budget) return {};
  std::uint64_t smaller = s.block_bytes() / 2 / page_bytes * page_bytes;
  while (smaller && needed(smaller) > budget) smaller = smaller / 2 / page_bytes * page_bytes;
  return {make_error_code(errc::budget_too_small),
          "array '" + s.options.name + "': blocks of " + std::to_string(s.block_bytes()) +
              " bytes do not fit the budget of " + std::to_string(pool.whole_budget()) +
              " bytes: " + (s.options.pinned_only ? "it" : "one copy between blocks") + " needs " +
              std::to_string(needed(s.block_bytes()) - pinned_bytes_) + taken_text() + "; give the runtime at least " +
              std::to_string(pool.whole_budget() - budget + needed(s.block_bytes())) + " bytes of memory" +
              (smaller ? " or choose a block of at most " + std::to_string(smaller) + " bytes" : std::string())};
}

void memory_budget::add_pins(segment_state& s, std::span<const block_range> which, int sign) noexcept {
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
  pinned_bytes_ += by * frames * bytes_of_pin(s);
}

failure memory_budget::count_pins(segment_state& s, std::span<const block_range> which) {
  guarded_lock g(state_.mutex());
  const invariants_hold at_end(*this);
  const std::uint64_t pinned_before = pinned_bytes_;
  const frame_pool& pool = state_.memory.pool();
  const std::uint64_t own = s.options.max_resident;
  const std::string taken = taken_text();
  add_pins(s, which, 1);
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
    why = "one copy between blocks needs " + std::to_string(needs().bytes()) + " more of the budget of " +
          std::to_string(pool.whole_budget()) + " bytes" + taken + "; pin a smaller box or give the runtime at least " +
          std::to_string(pool.whole_budget() - pool.budget() + needed) + " bytes of memory";
  else if (pinned_frames_ + frame_needs::frames > pool.max_frames())
    why = "the process may have " + std::to_string(pool.max_frames()) +
          " blocks in memory (vm.max_map_count / 5); pin a smaller box or choose larger blocks";
  if (why.empty()) return {};
  const std::uint64_t bytes = pinned_bytes_ - pinned_before;
  add_pins(s, which, -1);
  return {make_error_code(errc::budget_too_small),
          "array '" + s.options.name + "': cannot pin " + std::to_string(bytes) + " bytes" +
              (bytes && s.may_have_twins() ? " (twins included)" : "") + ": " + why};
}

void memory_budget::uncount_pins(segment_state& s, std::span<const block_range> which) noexcept {
  add_pins(s, which, -1);
}

void memory_budget::recount_pins(segment_state& s) noexcept {
  std::uint64_t frames = 0;
  for (const frame* f = s.resident; f; f = f->segment_next) frames += f->pins * s.frames_of(f->block);
  pinned_bytes_ += (frames - s.pinned_frames) * bytes_of_pin(s);
  pinned_frames_ += frames - s.pinned_frames;
  s.pinned_frames = frames;
}

void memory_budget::forget(const segment_state& s) noexcept {
  assert(pinned_frames_ >= s.pinned_frames);
  pinned_bytes_ -= s.pinned_frames * bytes_of_pin(s);
  pinned_frames_ -= s.pinned_frames;
}

}  // namespace ooc::detail
