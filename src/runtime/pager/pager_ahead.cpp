// Loads that nobody waits for: read-ahead and prefetch().
#include <algorithm>

#include "runtime/pager/pager.hpp"
#include "runtime/pager/signals.hpp"

namespace ooc::detail {

unsigned pager::ahead_limit(const segment_state& s) noexcept {
  constexpr std::uint64_t most_bytes = std::uint64_t{32} << 20;
  const std::uint64_t share = std::min(most_bytes, memory_.pool().budget() / 8);
  std::uint64_t blocks = std::max<std::uint64_t>(1, share / s.block_bytes());
  if (ahead_option_)
    blocks =
        std::min<std::uint64_t>(ahead_option_ - 1, memory_.pool().budget() / 4 / s.block_bytes());
  if (s.options.max_resident) blocks = std::min(blocks, s.options.max_resident / 4);
  return static_cast<unsigned>(blocks);
}

// Blocks of a group wait in memory for later lines of their sweep: three quarters of it, shared by
// all segments, or nothing is gained.  A limit on read-ahead is one on groups too.
ahead_group pager::group_for(const segment_state& s, unsigned limit) noexcept {
  ahead_group g{std::min(s.source->fetched_together(), most_together), 0};
  if (g.size > limit) g.size = 1;
  g.room = memory_.pool().budget() / s.block_bytes() / std::max<std::size_t>(1, segments_.size());
  if (s.options.max_resident) g.room = std::min(g.room, s.options.max_resident);
  g.room -= g.room / 4;
  return g;
}

void pager::fetch_ahead(lock_type& l, const event& e) {
  segment_state& s = *e.segment;
  const unsigned limit = ahead_limit(s);
  if (limit == 0) return;
  const ahead_group g = group_for(s, limit);
  wanted_.clear();
  const std::int64_t step = s.streams.touched(
      e.block, s.blocks.load(std::memory_order_relaxed), limit, g, wanted_);
  if (e.kind == touch::write && step != 0) write_swept(l, s, e.block, step);
  // What lies beyond the neighbours' next rows others will change before it is needed here.
  if (const block_range& near = s.options.part.near; near.contains(e.block))
    std::erase_if(wanted_, [&](block_index b) { return !near.contains(b); });
  for (auto first = wanted_.begin(); first != wanted_.end();) {
    auto last = first + 1;
    while (last != wanted_.end() && *last == last[-1] + 1 && *last % g.size != 0) ++last;
    if (!fetch(l, s, {first, last})) return;
    first = last;
  }
}

void pager::fetch_before_sweep(segment_state& s, std::span<const block_range> which) {
  std::uint64_t left = 0;
  {
    guarded_lock g(memory_.mutex());
    if (s.streams.pattern() != access_pattern::random) left = ahead_limit(s);
  }
  std::vector<block_range> nearest;
  for (auto r = which.rbegin(); r != which.rend() && left > 0; ++r) {
    const std::uint64_t n = std::min<std::uint64_t>(left, r->last - r->first);
    nearest.push_back({r->last - n, r->last});
    left -= n;
  }
  prefetch(s, nearest);
}

// Starts to load blocks that nobody waits for, those that come whole with one request; false where
// no frame is to be had.
bool pager::fetch(lock_type& l, segment_state& s, std::span<const block_index> which) {
  std::array<frame*, most_together> frames;
  std::size_t n = 0;
  bool room = true;
  for (const block_index index : which) {
    block& b = s.at(index);
    const load_part part =
        b.promised.load(std::memory_order_relaxed) ? load_part::outside_promise : load_part::whole;
    if (s.source->nothing_to_load(index, part) || !b.try_take(block_state::out)) continue;
    frame* f = memory_.obtain_ahead(l, s);
    if (!f) {
      b.publish(block_state::out);
      room = false;
      break;
    }
    memory_.assign(f, s, index);
    f->read_ahead = true;
    counters::add(memory_.count().read_ahead_blocks);
    begin_transfer(s);
    b.advance(block_state::loading);
    // obtain() released the lock: the promise may have been taken back meanwhile.
    if (part == load_part::outside_promise && b.promised.load(std::memory_order_relaxed))
      start_load(l, f, part);
    else
      frames[n++] = f;
  }
  if (n == 1) start_load(l, frames[0], load_part::whole);
  if (n > 1) start_joint_load(l, s, {frames.data(), n});
  return room;
}

// As start_load(), for whole blocks of one segment.
void pager::start_joint_load(lock_type& l, segment_state& s, std::span<frame* const> frames) {
  std::array<block_place, most_together> places;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    frames[i]->partial = frames[i]->zeroed = false;
    places[i] = {frames[i]->block, frames[i]->memory};
  }
  begin_call(s);
  try {
    const unlocked gap(l, memory_.mutex());
    const std::uint64_t bytes =
        s.source->load_together({places.data(), frames.size()},
                                [this, all = std::vector<frame*>(frames.begin(), frames.end())](
                                    const failure& r) { on_joint_load(all, r); });
    for (std::size_t i = 0; i < frames.size(); ++i)
      count_read(s, places[i].block, bytes / frames.size() + (i < bytes % frames.size()));
  } catch (const std::exception& e) {
    const unlocked gap(l, memory_.mutex());
    on_joint_load(frames, {std::make_error_code(std::errc::not_enough_memory), e.what()});
  }
  end_call(s);
}

// A failure does not say which block it is about: each is then loaded by itself.
void pager::on_joint_load(std::span<frame* const> frames, const failure& result) {
  for (frame* f : frames) {
    if (!result) {
      on_loaded(f, {});
      continue;
    }
    signals_blocked no_signals;
    segment_state& s = *f->segment;
    {
      lock_type l(memory_.mutex());
      begin_call(s);
    }
    load(f, load_part::whole);
    {
      lock_type l(memory_.mutex());
      end_call(s);
    }
  }
}

}  // namespace ooc::detail
