#include "runtime/blocks/block_ageing.hpp"

#include <algorithm>
#include <array>

#include "runtime/blocks/page_dropper.hpp"
#include "runtime/blocks/resident_set.hpp"

namespace ooc::detail {

// A fault that finds nobody has let grains age in time does it itself.
void block_ageing::one_came_in(unique_lock& l) noexcept {
  came_in_ = std::min(came_in_ + 1, page_dropper::most_together);
  for (std::size_t i = 0; i < policy_numbers::now.aged_per_miss && blocks_.order().wants_ageing(); ++i)
    if (grains(l, 2) || !one(l)) return;
}

void block_ageing::ahead(unique_lock& l) noexcept {
  if (blocks_.order().wants_ageing()) grains(l, 1);
}

bool block_ageing::grains(unique_lock& l, std::size_t times) noexcept {
  const frame* const f = blocks_.order().oldest_active();
  const std::size_t n = f ? blocks_.order().worth_ageing(f->cls->mapping->worth_together()) : 1;
  if (n == 1) return false;
  if (came_in_ * policy_numbers::now.aged_per_miss < n * times || !blocks_.order().wants_ageing(n * times)) return true;
  came_in_ = 0;
  together(l, n);
  return true;
}

block_state block_ageing::take_access(unique_lock& l, frame* f, block_state was) noexcept {
  const bool moves = f->cls->mapping->moves_out_to_age();
  bool out = true;
  {
    const unlocked gap(l, blocks_.mutex());
    if (moves)
      out = blocks_.map_out(f, access_in(was));
    else
      blocks_.set_access(f, block_access::none);
  }
  if (out) return moves ? block_state::ready : block_state::inactive;
  blocks_.give_back_held(f, was);
  return block_state::busy;
}

// The caller owns the block, which is in no queue.  False where the kernel holds it: it is then as it was.
bool block_ageing::alone(unique_lock& l, frame* f, block_state was) noexcept {
  const block_state now = take_access(l, f, was);
  if (now == block_state::busy) return false;
  f->past.aged = now == block_state::ready;
  bytes_ += f->cls->bytes;
  blocks_.order().make_inactive(f);
  f->segment->at(f->block).publish(now);
  return true;
}

// Grains that are owned, in no queue, and about to age.
struct block_ageing::owned_grains {
  std::array<frame*, page_dropper::most_together> frames;
  std::array<block_access, page_dropper::most_together> has;
  std::size_t count = 0;
};

// False where it is not mapped, or somebody is busy with it.
bool block_ageing::take(owned_grains& g, frame* f) noexcept {
  block& b = f->segment->at(f->block);
  const bool writable = b.try_take(block_state::rw);
  if (!writable && !b.try_take(block_state::ro)) return false;
  blocks_.order().forget(f);
  g.has[g.count] = writable ? block_access::write : block_access::read;
  g.frames[g.count++] = f;
  return true;
}

// Grains: to take one away interrupts the other processors, as often as is done, and not for each.
void block_ageing::together(unique_lock& l, std::size_t most) noexcept {
  owned_grains taken;
  std::size_t busy = 0;
  const frame_class* const cls = blocks_.order().oldest_active()->cls;
  for (frame* f; taken.count < most && busy < most && (f = blocks_.order().oldest_active()) && f->cls == cls;) {
    if (take(taken, f)) continue;
    if (f->segment->at(f->block).state() == block_state::ready) {  // not mapped: nothing to take away
      blocks_.order().make_inactive(f);
    } else {
      blocks_.order().make_active(f);
      ++busy;
    }
  }
  take_away(l, taken);
}

std::size_t block_ageing::these(unique_lock& l, segment_state& grains, std::span<const block_index> which) noexcept {
  owned_grains taken;
  for (const block_index i : which) {
    const block& b = grains.at(i);
    const block_state now = b.state();
    if (now != block_state::ro && now != block_state::rw) continue;
    frame* const f = grains.frame_of(b);
    if (f->list != frame_list::active || f->segment != &grains || f->block != i) continue;  // pinned, or on its way
    if (take(taken, f)) f->past.left = true;
  }
  take_away(l, taken);
  came_in_ -= std::min(came_in_, taken.count);  // these have aged for it
  return taken.count;
}

void block_ageing::take_away(unique_lock& l, const owned_grains& g) noexcept {
  if (g.count == 0) return;
  if (g.frames[0]->cls->mapping->worth_together() == 1) {
    for (std::size_t i = 0; i < g.count; ++i)
      alone(l, g.frames[i], g.has[i] == block_access::write ? block_state::rw : block_state::ro);
    return;
  }
  {
    const unlocked gap(l, blocks_.mutex());
    g.frames[0]->cls->mapping->map_out_together({g.frames.data(), g.count}, {g.has.data(), g.count});
  }
  for (std::size_t i = 0; i < g.count; ++i) {
    frame* const f = g.frames[i];
    f->past.aged = true;
    bytes_ += f->cls->bytes;
    blocks_.order().make_inactive(f);
    f->segment->at(f->block).publish(block_state::ready);
  }
}

bool block_ageing::one(unique_lock& l) noexcept {
  constexpr int attempts = 8;
  for (int i = 0; i < attempts; ++i) {
    frame* f = blocks_.order().oldest_active();
    if (!f) return false;
    block& b = f->segment->at(f->block);
    const block_state was = b.try_take(block_state::ro)   ? block_state::ro
                            : b.try_take(block_state::rw) ? block_state::rw
                                                          : block_state::busy;
    if (was != block_state::busy) {
      blocks_.order().forget(f);
      if (alone(l, f, was)) return true;
      continue;
    }
    if (const block_state now = b.state();
        now == block_state::ready || now == block_state::inactive) {  // nothing to take away
      blocks_.order().make_inactive(f);
      return true;
    }
    blocks_.order().make_active(f);  // somebody is busy with it
  }
  return false;
}

}  // namespace ooc::detail
