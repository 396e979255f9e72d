// Arrays that the ranks of a group use together: creating and opening, parts, sync(), sync_halo().
//
// Rank 0 alone talks to the metadata service, holds the claim to write for all, and says what the
// default block is; the others are told the file's entry (where nodes want to see capabilities, each
// rank fetches its own).  So all ranks have the same geometry, and a block's number means the same
// on each of them.
#include <algorithm>
#include <string>

#include "oocarray/error.hpp"
#include "runtime/array/array_entry.hpp"
#include "runtime/array/array_plan.hpp"
#include "runtime/array/array_source.hpp"
#include "runtime/geometry/access_log.hpp"
#include "runtime/geometry/array_geometry.hpp"
#include "runtime/geometry/conflicts.hpp"
#include "runtime/geometry/partition.hpp"
#include "runtime/geometry/stripes_by_rank.hpp"
#include "runtime/geometry/write_notices.hpp"
#include "runtime/pager/exact_access.hpp"
#include "runtime/pager/pager.hpp"
#include "storage/base/packed.hpp"
#include "storage/collective/entry_bytes.hpp"
#include "storage/layout/crc32c.hpp"

namespace ooc::detail {
namespace {

using bytes = process_group::bytes;

std::string list_of(const auto& numbers) {
  return to_string(std::vector<std::uint64_t>(numbers.begin(), numbers.end()));
}

/// An element that is no more than zeros is what arrays are filled with anyway.
std::string fill_text(const std::vector<std::byte>& fill) {
  constexpr std::size_t most_shown = 16;
  if (std::count(fill.begin(), fill.end(), std::byte{}) == std::ssize(fill)) return {};
  std::string t = ", fill bytes ";
  for (std::size_t i = 0; i < std::min(fill.size(), most_shown); ++i) {
    constexpr char digits[] = "0123456789abcdef";
    t += digits[std::to_integer<unsigned>(fill[i]) >> 4];
    t += digits[std::to_integer<unsigned>(fill[i]) & 15];
  }
  if (fill.size() > most_shown)
    t += "... with checksum " + std::to_string(storage::crc32c(fill.data(), fill.size()));
  return t;
}

/// Everything that must be the same on all ranks, what differs most often first.
std::string call_text(const std::string& path, const array_request& r) {
  const array_options<std::byte>& o = r.options;
  const bool creates = r.action == array_request::how::create;
  std::string t = creates                                          ? "create"
                  : r.action == array_request::how::open_read_only ? "open (read only)"
                                                                   : "open";
  t += " of '" + path + "' as " + r.element_type + ", rank " + std::to_string(r.rank);
  if (!r.extents.empty()) t += ", extents " + list_of(r.extents);
  const auto add = [&t](const char* name, std::uint64_t n) {
    if (n != 0) t += std::string(", ") + name + " " + std::to_string(n);
  };
  if (r.layout == memory_layout::tiled) t += ", layout_tiled";
  if (creates && o.order == file_order::tiled) t += ", tiled";
  if (!o.tile.empty()) t += ", tile " + list_of(o.tile);
  add("block", o.block);
  add("elements_per_buffer", o.elements_per_buffer);
  if (creates) {
    add("first node", o.stripes.sn);
    add("nodes in use", o.stripes.nn);
    add("stripe size", o.stripes.sf);
    t += fill_text(r.fill);
  }
  add("max_extent", o.max_extent);
  add("shared", o.shared);
  if (creates) add("placement by_rank", o.placement == placement::by_rank);
  add("owner_computes", o.owner_computes);
  add("check_conflicts", o.checking == check_conflicts);
  return t;
}

/// Rows first <= i < last.
index_box whole_rows(const array_geometry& g, std::uint64_t first, std::uint64_t last) {
  index_box b;
  std::copy(g.extents().begin(), g.extents().end(), b.upper.begin());
  b.lower[0] = first;
  b.upper[0] = last;
  return b;
}

using node_list = std::vector<std::uint64_t>;

node_list near_nodes(const storage::store_core& core) {
  const std::vector<std::uint32_t> all = core.near_nodes();
  return {all.begin(), all.end()};
}

/// Of each rank, from what it told when it came.
std::vector<node_list> near_ranks(const std::vector<bytes>& told) {
  std::vector<node_list> all;
  for (const bytes& b : told) {
    storage::unpacker u(b);
    u.number();
    all.push_back(u.numbers());
  }
  return all;
}

}  // namespace

void array_core::come_together(runtime& rt, const array_request& r) {
  process_group& g = *group_;
  storage::store_core& core = *store_.core();
  const bool leads = g.rank() == 0;
  const bool creates = r.action == array_request::how::create;
  const auto mode = writable_ ? storage::open_mode::read_write : storage::open_mode::read;
  const std::string call = call_text(path_, r);
  const bool by_rank = creates && r.options.placement == placement::by_rank;
  const std::vector<bytes> facts = g.together(call, [&] {
    rt.pager().account_store(store_.core(), core.staging_bytes());
    return storage::packer()
        .number(rt.pager().default_block_bytes())
        .numbers(by_rank ? near_nodes(core) : node_list{})
        .take();
  });
  const std::uint64_t block = storage::unpacker(facts.front()).number();

  // A rank whose budget is too small says so before anything is made.
  array_plan plan{array_geometry({.extents = {1}, .block_bytes = 4096}), {}, 0};
  if (creates)
    g.together("memory for " + call, [&] {
      plan = plan_new(path_, r, block, store_.nodes());
      if (by_rank)
        plan.stripes = stripes_by_rank(path_, plan.geometry, near_ranks(facts), store_.nodes());
      set_up(rt, r, plan);
      return bytes{};
    });
  const std::vector<bytes> entries = g.together(call, [&] {
    if (!leads) return bytes{};
    if (creates)
      make_file(r, plan);
    else
      entry_->opened = core.open(path_, mode);
    const storage::entry& meta = entry_->opened.meta;
    return storage::packer().number(meta.capability ? 1 : 0).bytes(storage::packed_entry(meta)).take();
  });
  const auto set_up_file = [&] {
    if (!leads) {
      storage::unpacker told(entries.front());
      const bool has_capability = told.number() != 0;  // which everybody must renew for himself
      // Not another opening: the leader's counts for all.
      entry_->opened = core.adopt(
          has_capability ? core.metadata().open(path_, mode == storage::open_mode::read_write)
                     : storage::unpacked_entry(told.bytes()));
    }
    const storage::entry& meta = entry_->opened.meta;
    if (!creates) plan = plan_existing(path_, r, meta, block);
    if (!claim_)
      claim_ = std::make_unique<file_claim>(core, meta.id, path_, "an ooc_array",
                                            leads ? writing_as(r) : writing::no,
                                            r.options.wait_for_writer);
    if (!creates) set_up(rt, r, plan);
    source_->set(plan.geometry, entry_->opened.file);
    return bytes{};
  };
  try {
    g.together("files for " + call, set_up_file);
  } catch (...) {
    if (leads && creates) core.remove(path_);  // a failure leaves no file behind
    throw;
  }
}

// --- parts

std::pair<std::size_t, std::size_t> array_core::rows_of(int rank) const {
  check_open();
  if (rank < 0 || rank >= ranks())
    throw usage_error(errc::invalid_request, "array '" + path_ + "': there is no rank " +
                                                 std::to_string(rank) + " among " +
                                                 std::to_string(ranks()));
  const index_box part =
      part_of(source_->current()->geometry, stripes(), static_cast<std::uint64_t>(rank),
              static_cast<std::uint64_t>(ranks()));
  return {part.lower[0], part.upper[0]};
}

/// Tells the source what this rank may write to, and returns what that means for blocks.
segment_part array_core::limit_to_part(const array_geometry& g, const striping& s) {
  const index_box part =
      part_of(g, s, static_cast<std::uint64_t>(rank()), static_cast<std::uint64_t>(ranks()));
  const part_blocks blocks = blocks_of_part(g, part);
  segment_part p;
  p.near = blocks.near;
  if (owner_computes_) {
    source_->set_part(part);
    if (!log_) p.own = blocks.own;  // else the elements that are changed must be known
    p.may_write = blocks.touched;
  }
  return p;
}

void array_core::check_in_part(const index_box& box) const {
  if (!owner_computes_) return;
  const auto [first, last] = rows_of(rank());
  if (box.lower[0] == box.upper[0] || (box.lower[0] >= first && box.upper[0] <= last)) return;
  throw usage_error(errc::invalid_request,
                    "array '" + path_ + "': rows " + std::to_string(box.lower[0]) + " to " +
                        std::to_string(box.upper[0]) + " cannot be pinned for writing on rank " +
                        std::to_string(rank()) + ", whose part is rows " + std::to_string(first) +
                        " to " + std::to_string(last) + " (owner_computes)");
}

// --- sync

void array_core::sync(durability d) {
  check_open();
  if (!group_) return writeback(d);
  const bool durable = d == durability::durable;
  const std::string call = durable ? "durable sync" : "sync";
  const std::vector<bytes> notices =
      exchange_writes(call, std::vector<block_range>{{0, segment_->blocks()}});
  if (!durable || !writable_) return take_in(call, notices);
  group_->together("making '" + path_ + "' durable", [&] {
    take_in(call, notices);  // here, as it may fail on one rank, and the others must not wait for it
    if (rank() == 0) make_data_durable();
    if (rank() == ranks() - 1) store_.core()->metadata().sync();
    return bytes{};
  });
}

void array_core::sync_halo(std::size_t rows) {
  check_open();
  if (!group_) return;
  const std::string call = "sync_halo(" + std::to_string(rows) + ")";
  take_in(call, exchange_writes(call, halo_blocks(rows)));
  // The next sweep begins with the rows before its part, which another rank has just written.
  const auto [first, last] = rows_of(rank());
  if (first == last) return;
  const std::uint64_t before = std::min<std::uint64_t>(rows, first);
  const array_geometry& g = source_->current()->geometry;
  segment_->fetch_before_sweep(g.blocks_of(whole_rows(g, first - before, first)));
}

/// The blocks that hold rows within `rows` of a border between parts: the same on all ranks.
std::vector<block_range> array_core::halo_blocks(std::size_t rows) const {
  const array_geometry& g = source_->current()->geometry;
  const std::uint64_t end = g.extents()[0];
  std::vector<block_range> all;
  for (int r = 0; r < ranks(); ++r) {
    const auto [first, last] = rows_of(r);
    if (first == 0 || first == last) continue;
    const std::vector<block_range> blocks =
        g.blocks_of(whole_rows(g, first - std::min<std::uint64_t>(rows, first),
                               first + std::min<std::uint64_t>(rows, end - first)));
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  return merged(std::move(all));
}

// One exchange is barrier, notice and outcome in one: when it has ended, every rank has written
// back `which`, and everybody knows what of it the others wrote: the notices.  What is loaded from
// then on is current; what was loaded before, or is on its way, is dropped by take_in() where another
// rank has written.  If the exchange fails, the blocks that were written, and the checking mode's
// accesses, stay on record for the next.
//
// The checking mode writes back and forgets every block.  What was read before the exchange comes
// before all that is written after it; what was written outside `which` is shown to nobody, and stays
// on record, to be compared with what others do from then on.
std::vector<bytes> array_core::exchange_writes(const std::string& call,
                                               std::span<const block_range> which) {
  std::vector<block_range> written;
  accesses noted;
  std::vector<bytes> notices;
  try {
    notices = group_->together(call + " of '" + path_ + "'", [&] {
      check_unpinned(call.c_str());
      if (writable_) throw_if(log_ ? segment_->writeback() : segment_->writeback(which));
      written = segment_->take_written(which);
      storage::packer p;
      p.bytes(packed_notice(written));
      if (log_) {
        noted = log_->take();
        noted.add(segment_->take_read());
        p.bytes(noted.packed());
      }
      return p.take();
    });
  } catch (...) {
    segment_->note_written(written);
    if (log_) log_->put_back(noted);
    throw;
  }
  if (log_) log_->put_back(noted.left_by(which, segment_->block_bytes()));
  return notices;
}

void array_core::take_in(const std::string& call, const std::vector<bytes>& notices) {
  forget_others_writes(call, notices);
  if (log_) report_conflicts(notices);
}

void array_core::forget_others_writes(const std::string& call,
                                      const std::vector<bytes>& notices) {
  std::vector<block_range> others;
  if (log_) {
    others.push_back({0, segment_->blocks()});  // so that the first read of a block is seen
  } else {
    for (std::size_t r = 0; r < notices.size(); ++r) {
      if (static_cast<int>(r) == rank()) continue;
      const std::vector<block_range> theirs =
          unpacked_notice(storage::unpacker(notices[r]).bytes());
      others.insert(others.end(), theirs.begin(), theirs.end());
    }
  }
  if (segment_->invalidate(merged(std::move(others)), false) != segment::invalidated::done)
    throw usage_error(errc::busy, "array '" + path_ + "': another thread of rank " +
                                      std::to_string(rank()) +
                                      " wrote to it or pinned it during " + call);
}

// --- the checking mode

void array_core::note_read(const std::byte* element, std::size_t size) const {
  bool& exact = exact_access();
  exact = true;
  // The last byte may lie in the next block.
  for (const std::byte* p : {element, element + size - 1})
    static_cast<void>(*static_cast<const volatile std::byte*>(p));
  exact = false;
  log_->note_read({static_cast<std::uint64_t>(element - base()), size});
}

// What is left of sync() for an array that closes: nobody looks at it any more.
void array_core::check_last_epoch() {
  report_conflicts(exchange_writes("close", std::vector<block_range>{{0, segment_->blocks()}}));
}

void array_core::report_conflicts(const std::vector<bytes>& notices) const {
  std::vector<accesses> by_rank;
  for (const bytes& n : notices) {
    storage::unpacker u(n);
    u.bytes();
    by_rank.push_back(accesses::unpacked(u.bytes()));
  }
  const array_geometry& g = source_->current()->geometry;
  const std::vector<conflict> found = find_conflicts(g, by_rank);
  if (!found.empty())
    throw usage_error(errc::conflict,
                      "array '" + path_ + "': since the last sync " + describe(found, g.rank()));
}

}  // namespace ooc::detail
