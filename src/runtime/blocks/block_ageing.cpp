#include "runtime/blocks/block_ageing.hpp"

#include <algorithm>
#include <array>

#include "runtime/blocks/page_dropper.hpp"
#include "runtime/blocks/resident_set.hpp"

namespace ooc::detail {

// A fault that finds nobody has let grains age in time does it itself.
void block_ageing::one_came_in(unique_lock& l) noexcept {
  came_in_ = std::min(came_in_ + 1, page_dropper::most_together);
  for (std::size_t i = 0; i < replacement::aged_per_miss && blocks_.order().wants_ageing(); ++i)
    if (grains(l, 2) || !one(l)) return;
}

void block_ageing::ahead(unique_lock& l) noexcept {
  if (blocks_.order().wants_ageing()) grains(l, 1);
}

bool block_ageing::grains(unique_lock& l, std::size_t times) noexcept {
  const frame* const f = blocks_.order().oldest_active();
  const std::size_t n = f ? blocks_.order().worth_ageing(f->cls->mapping->worth_together()) : 1;
  if (n == 1) return false;
  if (came_in_ * replacement::aged_per_miss < n * times || !blocks_.order().wants_ageing(n * times)) return true;
  came_in_ = 0;
  together(l, n);
  return true;
}

// Grains: to take one away interrupts the other processors, as often as is done, and not for each.
void block_ageing::together(unique_lock& l, std::size_t most) noexcept {
  std::array<frame*, page_dropper::most_together> taken;
  std::array<block_access, page_dropper::most_together> has;
  std::size_t n = 0, busy = 0;
  const frame_class* const cls = blocks_.order().oldest_active()->cls;
  for (frame* f; n < most && busy < most && (f = blocks_.order().oldest_active()) && f->cls == cls;) {
    block& b = f->segment->at(f->block);
    if (const bool writable = b.try_take(block_state::rw); writable || b.try_take(block_state::ro)) {
      blocks_.order().forget(f);
      has[n] = writable ? block_access::write : block_access::read;
      taken[n++] = f;
    } else if (b.state() == block_state::ready) {  // not mapped: nothing to take away
      blocks_.order().make_inactive(f);
    } else {
      blocks_.order().make_active(f);
      ++busy;
    }
  }
  if (n == 0) return;
  {
    const unlocked gap(l, blocks_.mutex());
    cls->mapping->map_out_together({taken.data(), n}, {has.data(), n});
  }
  for (std::size_t i = 0; i < n; ++i) {
    frame* const f = taken[i];
    f->aged = true;
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
      const bool moves = f->cls->mapping->moves_out_to_age();
      blocks_.order().forget(f);
      bool out = true;
      {
        const unlocked gap(l, blocks_.mutex());
        if (moves)
          out = blocks_.map_out(f, access_in(was));
        else
          blocks_.set_access(f, block_access::none);
      }
      if (!out) {
        blocks_.give_back_held(f, was);
        continue;
      }
      f->aged = moves;
      bytes_ += f->cls->bytes;
      blocks_.order().make_inactive(f);
      b.publish(moves ? block_state::ready : block_state::inactive);
      return true;
    }
    if (b.state() == block_state::ready) {  // not mapped: nothing to take away
      blocks_.order().make_inactive(f);
      return true;
    }
    blocks_.order().make_active(f);  // somebody is busy with it
  }
  return false;
}

}  // namespace ooc::detail
