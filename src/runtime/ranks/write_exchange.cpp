#include "runtime/ranks/write_exchange.hpp"

#include <algorithm>
#include <utility>

#include "oocarray/error.hpp"
#include "runtime/geometry/access_log.hpp"
#include "runtime/geometry/conflicts.hpp"
#include "runtime/geometry/write_notices.hpp"
#include "runtime/pager/pager.hpp"
#include "storage/base/packed.hpp"

namespace ooc::detail {
namespace {

using bytes = process_group::bytes;

/// Rows first <= i < last.
index_box whole_rows(const array_geometry& g, std::uint64_t first, std::uint64_t last) {
  index_box b;
  std::copy(g.extents().begin(), g.extents().end(), b.upper.begin());
  b.lower[0] = first;
  b.upper[0] = last;
  return b;
}

}  // namespace

void write_exchange::sync(durability d) {
  array_.local().check_open();
  if (!array_.grouped()) {
    array_.local().writeback(d);
    return array_.forget({}, "sync");
  }
  const bool durable = d == durability::durable;
  const std::string call = durable ? "durable sync" : "sync";
  const notices told = exchange_writes(call, std::vector<block_range>{{0, array_.segment().blocks()}}, durable);
  if (!durable || !array_.local().facts().writable) return take_in_alone(call, told);
  array_.group().together("making '" + array_.path() + "' durable", [&] {
    take_in(call, told);  // here, as it may fail on one rank, and the others must not wait for it
    make_durable(told);
    return bytes{};
  });
  array_.local().file().made_durable_elsewhere(written_back_);
}

void write_exchange::make_durable(const notices& told) const {
  const bool data = array_.rank() == 0, entry = array_.rank() == array_.ranks() - 1;
  if (!data && !entry) return;
  std::vector<array_file::epochs> unsynced;
  for (const bytes& n : told) {
    storage::unpacker u(n);
    u.bytes();
    if (array_.log()) u.bytes();
    const std::uint64_t metadata = u.number();
    unsynced.push_back({metadata, u.numbers()});
  }
  if (data) array_.local().file().make_durable(unsynced);
  if (entry) array_.local().file().make_entry_durable(unsynced);
}

void write_exchange::sync_before(const std::string& change) {
  if (!array_.grouped()) return sync(durability::acknowledged);
  const notices told = exchange_writes("sync", std::vector<block_range>{{0, array_.segment().blocks()}});
  array_.group().together("blocks for " + change, [&] { return take_in("sync", told), bytes{}; });
}

void write_exchange::sync_halo(std::size_t rows) {
  array_.local().check_open();
  if (!array_.grouped()) return;
  const std::string call = "sync_halo(" + std::to_string(rows) + ")";
  take_in_alone(call, exchange_writes(call, halo_blocks(rows)));
  // The next sweep begins with the rows before its part, which another rank has just written.
  const auto [first, last] = array_.rows_of(array_.rank());
  if (first == last) return;
  const std::uint64_t before = std::min<std::uint64_t>(rows, first);
  const array_geometry& g = array_.geometry();
  array_.segment().fetch_before_sweep(g.blocks_of(whole_rows(g, first - before, first)));
}

/// The blocks that hold rows within `rows` of a border between parts: the same on all ranks.
std::vector<block_range> write_exchange::halo_blocks(std::size_t rows) const {
  const array_geometry& g = array_.geometry();
  const std::uint64_t end = g.extents()[0];
  std::vector<block_range> all;
  for (int r = 0; r < array_.ranks(); ++r) {
    const auto [first, last] = array_.rows_of(r);
    if (first == 0 || first == last) continue;
    const std::vector<block_range> blocks = g.blocks_of(whole_rows(g, first - std::min<std::uint64_t>(rows, first),
                                                                   first + std::min<std::uint64_t>(rows, end - first)));
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  return merged(std::move(all));
}

// One exchange is barrier, notice and outcome in one: when it has ended, every rank has written
// back `which`, and everybody knows what of it the others wrote: the notices.  What is loaded from
// then on is current; what was loaded before, or is on its way, is dropped by take_in() where
// another rank has written.  If the exchange fails, the blocks that were written, and the checking
// mode's accesses, stay on record for the next.
//
// The checking mode writes back and forgets every block.  What was read before the exchange comes
// before all that is written after it; what was written outside `which` is shown to nobody, and
// stays on record, to be compared with what others do from then on.
//
// A durable sync also tells what is unsynced.
write_exchange::notices write_exchange::exchange_writes(const std::string& call, std::span<const block_range> which,
                                                        bool durable) {
  std::vector<block_range> written;
  accesses noted;
  notices told;
  try {
    told = array_.group().together(call + " of '" + array_.path() + "'", [&] {
      array_.local().check_unpinned(call.c_str());
      if (array_.local().facts().writable)
        throw_if(array_.log() ? array_.segment().writeback() : array_.segment().writeback(array_.with_owed(which)));
      written = array_.segment().take_written(which);
      storage::packer p;
      p.bytes(packed_notice(written));
      if (array_.log()) {
        noted = array_.log()->take();
        noted.add(array_.segment().take_read());
        p.bytes(noted.packed());
      }
      if (durable) {
        written_back_ = storage::next_moment();
        const array_file::epochs mine = array_.local().file().unsynced();
        p.number(mine.metadata).numbers(mine.nodes);
      }
      return p.take();
    });
  } catch (...) {
    array_.segment().note_written(written);
    if (array_.log()) array_.log()->put_back(noted);
    throw;
  }
  if (array_.log()) array_.log()->put_back(noted.left_by(which, array_.segment().block_bytes()));
  return told;
}

void write_exchange::take_in(const std::string& call, const notices& told) {
  try {
    forget_others_writes(call, told);
  } catch (...) {
    if (array_.log()) report_conflicts(told);  // which all ranks throw
    throw;
  }
  if (array_.log()) report_conflicts(told);
}

// The others have what they need, and do not wait to hear of it.
void write_exchange::take_in_alone(const std::string& call, const notices& told) {
  try {
    take_in(call, told);
  } catch (const usage_error& e) {
    if (e.code() != errc::busy) throw;
    throw usage_error(errc::busy, std::string(e.what()) +
                                      "; the other ranks have ended the call, so do not repeat it on this one alone: "
                                      "until the next sync() of all ranks, elements that others have written may be "
                                      "read here as they were before; let no thread use the array during " +
                                      call);
  }
}

void write_exchange::forget_others_writes(const std::string& call, const notices& told) {
  std::vector<block_range> others;
  if (array_.log()) {
    others.push_back({0, array_.segment().blocks()});  // so that the first read of a block is seen
  } else {
    for (std::size_t r = 0; r < told.size(); ++r) {
      if (static_cast<int>(r) == array_.rank()) continue;
      const std::vector<block_range> theirs = unpacked_notice(storage::unpacker(told[r]).bytes());
      others.insert(others.end(), theirs.begin(), theirs.end());
    }
  }
  array_.forget(others, call);
}

void write_exchange::check_last() {
  const std::vector<block_range> all{{0, array_.segment().blocks()}};
  report_conflicts(exchange_writes("close", all));
}

void write_exchange::report_conflicts(const notices& told) const {
  std::vector<accesses> by_rank;
  for (const bytes& n : told) {
    storage::unpacker u(n);
    u.bytes();
    by_rank.push_back(accesses::unpacked(u.bytes()));
  }
  const array_geometry& g = array_.geometry();
  const std::vector<conflict> found = find_conflicts(g, by_rank);
  if (!found.empty())
    throw usage_error(errc::conflict, "array '" + array_.path() + "': since its last sync " +
                                          describe(found, g.rank()) +
                                          "; if a sync() of another array lies between, let this one have one as well");
}

}  // namespace ooc::detail
