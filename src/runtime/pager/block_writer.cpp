#include "runtime/pager/block_writer.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "runtime/blocks/diff.hpp"
#include "runtime/blocks/untracked.hpp"
#include "runtime/pager/signals.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {

namespace {

constexpr std::uint64_t most_write_bytes = std::uint64_t{32} << 20;

std::size_t writes_in_flight(std::size_t block_bytes) {
  return std::clamp<std::size_t>(most_write_bytes / block_bytes, 4, 64);
}

}  // namespace

// The bytes at `job.from` are the block's, and nobody changes them before the store ends; the block then
// becomes `job.then`.  Grains wait in the batch for others.
void block_writer::start_store(unique_lock& l, store_job job, store_batch* batch) {
  frame* const f = job.f;
  segment_state& s = *f->segment;
  assert(f->dirty.load(std::memory_order_relaxed) && !f->copying);
  assert(s.at(f->block).state() == (job.then == block_state::ro ? block_state::flush : block_state::writing));
  state_.store_begins(s);
  state_.call_begins(s);
  if (job.group) job.group->begin();
  if (batch && s.parent) {
    if (batch->count > 0 && batch->jobs[0].f->segment != &s) send(l, *batch);
    batch->jobs[batch->count++] = std::move(job);
    if (batch->count == store_batch::most) send(l, *batch);
    return;
  }
  {
    const unlocked gap(l, state_.mutex());
    send_alone(job);
  }
  state_.call_ends(s);
}

void block_writer::send_alone(const store_job& job) {
  try {
    send(job.f, job.from, [this, job](const failure& r) { on_stored(job, r); });
  } catch (const std::bad_alloc& e) {  // before anything was sent
    on_stored(job, {std::make_error_code(std::errc::not_enough_memory), e.what()});
  }
}

void block_writer::send(unique_lock& l, store_batch& batch) {
  if (batch.count == 0) return;
  segment_state& s = *batch.jobs[0].f->segment;
  const auto first = batch.jobs.begin();
  const auto last = first + static_cast<std::ptrdiff_t>(std::exchange(batch.count, 0));
  const auto n = last - first;
  {
    const unlocked gap(l, state_.mutex());
    std::sort(first, last, [](const store_job& a, const store_job& b) { return a.f->block < b.f->block; });
    std::array<stored_block, store_batch::most> blocks;
    for (auto j = first; j != last; ++j) blocks[static_cast<std::size_t>(j - first)] = {j->f->block, j->from};
    try {
      s.source->store_together({blocks.data(), static_cast<std::size_t>(n)},
                               [this, jobs = std::vector<store_job>(first, last)](
                                   const failure& r, std::uint64_t bytes) { on_stored_together(jobs, r, bytes); });
    } catch (const std::exception& e) {
      on_stored_together({first, last}, {std::make_error_code(std::errc::not_enough_memory), e.what()}, 0);
    }
    std::fill(first, last, store_job{});
  }
  for (auto i = n; i > 0; --i) state_.call_ends(s);
}

// A failure does not say which block it is about: each is then stored by itself.
void block_writer::on_stored_together(std::span<const store_job> jobs, const failure& result, std::uint64_t bytes) {
  state_.memory.count(*jobs.front().f->segment, &counters::bytes_written, bytes);
  for (const store_job& job : jobs) {
    if (!result || jobs.size() == 1) {
      on_stored(job, result);
      continue;
    }
    const signals_blocked no_signals;
    segment_state& s = *job.f->segment;
    {
      const unique_lock l(state_.mutex());
      state_.call_begins(s);
    }
    send_alone(job);
    const unique_lock l(state_.mutex());
    state_.call_ends(s);
  }
}

// Gives the bytes at `from` to the source: of a block with a twin, which is the caller's until `done`,
// those that the store may not have.  A store that fails may have arrived in part, or whole: from then
// on the twin does not tell what the store has of the bytes that were sent, and the block keeps record
// of them until they have been sent with success.
void block_writer::send(frame* f, const std::byte* from, std::function<void(const failure&)> done) {
  segment_state& s = *f->segment;
  assert(s.options.writable);
  const auto answered = [this, f, from, done = std::move(done), bytes = s.mapped_bytes(f->block)](
                            failure r, bool any_sent, std::uint64_t sent) {
    state_.memory.count(*f->segment, &counters::bytes_written, sent);
    if (r && any_sent) {
      try {
        auto doubt = std::make_unique<bytes_in_doubt>(from, f->twin->memory, bytes);
        delete std::exchange(f->doubt, doubt.release());
      } catch (const std::bad_alloc&) {
        r.what +=
            "; there was no memory to record what of it may have arrived all the same, so "
            "elements that return to a former value may not be sent again";
      }
    }
    done(r);
  };
  bool any_sent = false;
  try {
    if (f->twin) {
      std::byte* const twin = f->twin->memory;
      if (f->doubt) f->doubt->spoil(twin, from);
      if (const failure refused = s.source->refusal(f->block, from, twin)) return answered(refused, false, 0);
      any_sent = true;
      s.source->store_diff(f->block, from, twin,
                           [answered](const failure& r, std::uint64_t sent) { answered(r, true, sent); });
    } else {
      s.source->store(f->block, from, [answered](const failure& r, std::uint64_t sent) { answered(r, false, sent); });
    }
  } catch (const std::exception& e) {
    answered({std::make_error_code(std::errc::not_enough_memory), e.what()}, any_sent, 0);
  }
}

void block_writer::on_stored(const store_job& job, const failure& result) {
  frame* const f = job.f;
  failure told;
  {
    signals_blocked no_signals;
    unique_lock l(state_.mutex());
    segment_state& s = *f->segment;
    assert(f->dirty.load(std::memory_order_relaxed));  // until here
    assert(is_transient(s.at(f->block).state()));
    if (result) {
      told = described(s, f->block, "cannot be written", result);
      f->failed = true;
      if (!job.group && !s.background_write_error) s.background_write_error = told;
    } else {
      state_.memory.mark_clean(f);
      state_.memory.trace.note(traced::written_back, s.traced_as, f->block);
      ++stored_;
    }
    s.at(f->block).publish(job.then);
    state_.store_ends(s);
  }
  if (job.group) job.group->end(told);
}

// Writes an unmapped or inactive block from its frame; false where somebody is busy with it, or the
// kernel holds it.  The block
// must be dirty.  An active one may be taken as well: it is unmapped.  `swept`: a sweep has just left
// it.
bool block_writer::clean(unique_lock& l, frame* f, std::shared_ptr<in_flight> group, store_batch* batch, bool swept) {
  if (!f->dirty.load(std::memory_order_relaxed) || f->pins || f->copying) return false;
  block& b = f->segment->at(f->block);
  auto was = block_state::busy;
  for (const block_state s : {block_state::ready, block_state::inactive, block_state::rw, block_state::ro})
    if (b.try_take(s)) {
      was = s;
      break;
    }
  if (was == block_state::busy) return false;
  assert(f->segment->frame_of(b) == f && !f->merging);
  if (was != block_state::ready) {
    bool out;
    {
      const unlocked gap(l, state_.mutex());
      out = state_.memory.map_out(f, access_in(was));
    }
    if (!out) {
      state_.memory.give_back_held(f, was);
      return false;
    }
  }
  b.advance(block_state::writing);
  f->past.swept = swept;
  start_store(l, {f, f->memory, block_state::ready, std::move(group)}, batch);
  return true;
}

// In any other order the blocks that one instruction needs would be taken from it in turn.
bool block_writer::clean_oldest(unique_lock& l, const segment_state* only) {
  for (frame* from : {state_.memory.order().oldest(), state_.memory.order().oldest_active()})
    for (frame* f = from; f; f = f->next)
      if ((!only || f->segment == only) && !f->failed && clean(l, f, nullptr)) return true;
  return false;
}

bool block_writer::make_room(unique_lock& l) {
  if (!clean_oldest(l, nullptr) && state_.transfers() == 0) return false;
  if (state_.transfers() > 0) state_.changed.wait(l);
  return true;
}

// Only where frames are about to run out: what fits in memory is not written before it must be.  A
// miss that stands waiting says that they have, whatever the numbers are: its block may be larger than
// the margin.  How far ahead of the eviction blocks are written, aged_return says.  So many grains are kept clean in
// any case as may leave before the next look, and for a miss that waits one block is written.
void block_writer::write_behind(unique_lock& l) {
  const std::uint64_t lookahead = std::min(most_write_bytes, state_.memory.pool().budget() / 4);
  if (!state_.starving() && state_.memory.pool().has_room(lookahead)) return;
  if (std::none_of(state_.segments.begin(), state_.segments.end(),
                   [](const segment_state* s) { return s->dirty.load(std::memory_order_relaxed) > 0; }))
    return;
  // Grains are not written by ones and twos, nor is the way to them gone over for a few.
  const std::uint64_t worth_it = std::min(4 * store_batch::most * grain_bytes, lookahead / 8);
  const std::uint64_t aged = state_.memory.ageing().bytes();
  if (!state_.starving() && !behind_ && aged - aged_seen_ < worth_it) return;
  aged_seen_ = aged;
  constexpr std::size_t most_stores = 64;
  store_batch batch;
  while (state_.stores_in_flight() < most_stores && clean_some(l, lookahead, worth_it, batch)) {
  }
  behind_ = state_.stores_in_flight() >= most_stores;
  send(l, batch);
  if (state_.starving() && state_.stores_in_flight() == 0) clean_oldest(l, nullptr);
}

// Goes over the first `lookahead` bytes of what has aged, of which less than `at_least` are kept clean whatever comes
// back. It ends early where it has released the lock.  False where it found nothing to do.
bool block_writer::clean_some(unique_lock& l, std::uint64_t lookahead, std::uint64_t at_least, store_batch& batch) {
  const std::size_t queue = state_.memory.order().inactive_size();
  std::uint64_t passed = 0, clean_bytes = 0;
  std::size_t place = 0;
  bool started = false;
  for (frame* f = state_.memory.order().oldest(); f && passed < lookahead; f = f->next, ++place) {
    const std::size_t bytes = f->cls->bytes;
    passed += bytes;
    if (f->failed) continue;
    const bool dirty = f->dirty.load(std::memory_order_relaxed);
    if (dirty && clean_bytes + bytes >= at_least && place >= f->segment->past.worth_writing(queue)) continue;
    clean_bytes += bytes;
    if (!dirty) continue;
    const bool unmapped = f->segment->at(f->block).state() == block_state::ready;
    if (!clean(l, f, nullptr, &batch)) continue;
    started = true;
    if (!unmapped || batch.count == 0) return true;
  }
  return started;
}

// Only where the open arrays, of those that ranks share the parts, do not fit in memory together, so that some of
// them must make room: the disk is then busy from the sweep's beginning on, not only once memory is full.
void block_writer::write_swept(unique_lock& l, segment_state& s, block_index index, std::int64_t step) {
  if (state_.stores_in_flight() >= writes_in_flight(s.block_bytes())) return;
  const auto left = s.writes.to_clean_behind(index, step, s.blocks.load(std::memory_order_relaxed));
  if (!left || state_.bytes_to_stay() <= state_.memory.pool().budget()) return;
  frame* f = s.frame_of(s.at(*left));
  if (f->segment != &s || f->block != *left || f->failed) return;
  if (clean(l, f, nullptr, nullptr, true)) s.writes.cleaned_behind_sweep();
}

// --- writeback

failure block_writer::writeback(segment_state& s, std::span<const block_range> which) {
  const std::uint64_t start = sys::now_ns();
  failure f = write_back(s, which);
  state_.memory.count(s, &counters::write_wait_ns, sys::now_ns() - start);
  return f;
}

failure block_writer::write_back(segment_state& s, std::span<const block_range> which) {
  std::vector<block_index> dirty;
  {
    guarded_lock g(state_.mutex());
    s.background_write_error = {};  // what failed is dirty still and tried again now
    s.writes.written_back();
    for (frame* f = s.resident; f; f = f->segment_next)
      if (f->dirty.load(std::memory_order_relaxed) && (f->failed || contains(which, f->block)))
        dirty.push_back(f->block);
  }
  std::sort(dirty.begin(), dirty.end());
  const auto group = std::make_shared<in_flight>();
  const std::size_t limit = writes_in_flight(s.block_bytes());
  failure pinned_failure;
  store_batch batch;
  try {
    for (block_index b : dirty) {
      if (!group->is_below(limit)) {
        send_now(batch);
        group->wait_below(limit);
      }
      if (flush(s, b, group, batch)) continue;
      send_now(batch);
      if (failure f = write_pinned(s, b); f && !pinned_failure) pinned_failure = f;
    }
  } catch (...) {  // others wait for what has begun
    send_now(batch);
    throw;
  }
  send_now(batch);
  if (failure first = group->wait()) return first;
  return pinned_failure ? pinned_failure : s.source->flush();
}

void block_writer::send_now(store_batch& batch) {
  if (batch.count == 0) return;
  guarded_lock g(state_.mutex());
  send(g, batch);
}

std::vector<block_writer::unwritten> block_writer::write_back_all() {
  std::vector<segment_state*> all;
  {
    guarded_lock g(state_.mutex());
    std::ranges::copy_if(state_.segments, std::back_inserter(all),
                         [](const segment_state* s) { return !s->options.temporary; });
    for (segment_state* s : all) ++s->writers_at_end;  // remove() waits
  }
  std::vector<unwritten> left;
  for (segment_state* s : all) {
    failure f;
    try {
      const block_range whole[] = {every_block};
      f = write_back(*s, whole);
    } catch (const std::exception& e) {
      f = {std::make_error_code(std::errc::not_enough_memory), e.what()};
    }
    if (const std::uint64_t n = s->dirty.load(); n > 0 || f) left.push_back({s->options.name, n, f});
    guarded_lock g(state_.mutex());
    --s->writers_at_end;
    state_.changed.notify_all();
  }
  return left;
}

std::vector<block_writer::unwritten> block_writer::modified() const {
  const signals_blocked no_signals;
  std::vector<unwritten> all;
  if (!state_.mutex().try_lock()) return all;
  const lock_guard l(state_.mutex(), std::adopt_lock);
  for (const segment_state* s : state_.segments)
    if (const std::uint64_t n = s->options.temporary ? 0 : s->dirty.load()) all.push_back({s->options.name, n, {}});
  return all;
}

// Starts the store of one block, or sees that it is clean; false where it is pinned for writing: the
// caller must then call write_pinned().
bool block_writer::flush(segment_state& s, block_index index, const std::shared_ptr<in_flight>& group,
                         store_batch& batch) {
  block& b = s.at(index);
  for (;;) {
    {
      guarded_lock g(state_.mutex());
      const std::uint32_t word = b.word.load(std::memory_order_acquire);
      const block_state state = state_of(word);
      if (state == block_state::out || state == block_state::queued || state == block_state::loading ||
          state == block_state::in_grains)
        return true;  // written and evicted meanwhile
      if (!is_transient(state)) {
        if (!b.try_take(state)) continue;
        frame* f = s.frame_of(b);
        if (!f->dirty.load(std::memory_order_relaxed)) {
          b.publish(state);
          return true;
        }
        if (f->copying) {  // what is stored after the copy must arrive after it
          b.publish(state);
          if (batch.count > 0)
            send(g, batch);  // without the mutex: the copy may end meanwhile
          else
            state_.changed.wait(g);
          continue;
        }
        if (f->write_pins) {
          f->copying = true;
          state_.transfer_begins(s);
          b.publish(state);
          return false;
        }
        if (state == block_state::ro || state == block_state::rw) {
          const bool in_place = f->pins || !f->cls->mapping->moves_out_to_age();
          bool held = false;
          g.unlock();
          if (!in_place)
            held = !state_.memory.map_out(f, access_in(state));
          else if (state == block_state::rw)
            state_.memory.set_access(f, block_access::read);
          g.lock();
          if (held) {  // what the kernel writes may still come: as if it were pinned for writing
            f->copying = true;
            state_.transfer_begins(s);
            b.publish(state);
            return false;
          }
          if (!in_place) {
            b.advance(block_state::writing);
            f->past.swept = false;
            start_store(g, {f, f->memory, block_state::ready, group}, &batch);
            return true;
          }
          b.publish(block_state::flush);
          start_store(g, {f, s.address(index), block_state::ro, group}, &batch);
        } else {
          b.publish(state);
          if (!clean(g, f, group, &batch)) continue;
        }
        return true;
      }
    }
    const std::uint32_t word = b.word.load(std::memory_order_acquire);
    if (!is_transient(state_of(word))) continue;
    send_now(batch);
    b.wait(word, false);
  }
}

// The program, or the kernel on its behalf, may go on writing: what counts is what was there when
// the call began.  The block may be unpinned meanwhile; it stays in memory, dirty and otherwise
// unwritten, until the copy has arrived.  The twin is then what has arrived, so that whatever is
// written later differs from it, an element that returns to its former value too.
failure block_writer::write_pinned(segment_state& s, block_index index) {
  frame* const f = s.frame_of(s.at(index));  // with its twin this thread's while `copying`
  const std::size_t mapped = s.mapped_bytes(index);
  const std::unique_ptr<std::byte, decltype(&std::free)> copy(
      static_cast<std::byte*>(std::aligned_alloc(page_bytes, s.block_bytes())), &std::free);
  failure result;
  if (copy) {
    copy_untracked(copy.get(), s.address(index), mapped);
    in_flight store;
    store.start([&](auto ended) { send(f, copy.get(), ended); });
    result = store.wait();
  } else {
    result = {std::make_error_code(std::errc::not_enough_memory), "copy of a pinned block"};
  }
  if (!result && f->twin) {
    copy_untracked(f->twin->memory, copy.get(), mapped);
    delete std::exchange(f->doubt, nullptr);
  }
  guarded_lock g(state_.mutex());
  f->copying = false;
  state_.transfer_ends(s);
  return result ? described(s, index, "cannot be written", result) : failure{};
}

}  // namespace ooc::detail
