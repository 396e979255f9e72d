// Creating and opening together, parts, sync(), sync_halo(), the checking mode; see
// shared_array.hpp.
//
// Rank 0 alone talks to the metadata service, holds the claim to write for all, and says what the
// default block is; the others are told the file's entry (where nodes want to see capabilities,
// each rank fetches its own).  So all ranks have the same geometry, and a block's number means the
// same on each of them.
#include "runtime/ranks/shared_array.hpp"

#include <algorithm>

#include "oocarray/error.hpp"
#include "runtime/array/array_plan.hpp"
#include "runtime/geometry/access_log.hpp"
#include "runtime/geometry/conflicts.hpp"
#include "runtime/geometry/partition.hpp"
#include "runtime/geometry/stripes_by_rank.hpp"
#include "runtime/geometry/write_notices.hpp"
#include "runtime/pager/exact_access.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/ranks/self_group.hpp"
#include "storage/base/packed.hpp"
#include "storage/base/page.hpp"
#include "storage/collective/rank_messages.hpp"
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
  t += " of '" + path + "' as " +
       (r.element_type.empty() ? "recorded" : r.element_type + ", rank " + std::to_string(r.rank));
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
  add("open_unfinished", o.unfinished == open_unfinished);
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
  const std::vector<std::uint32_t> all = storage::near_nodes(core.nodes());
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

shared_array::shared_array(runtime& rt, const ooc::store& s, std::string_view path,
                           const array_request& r)
    : group_(r.options.group ? r.options.group : std::make_shared<alone>()),
      grouped_(r.options.group != nullptr),
      owner_computes_(r.options.owner_computes),
      shared_(r.options.shared),
      local_(s, path, r) {
  if (r.options.checking == check_conflicts && ranks() > 1) log_ = std::make_unique<access_log>();
  if (owner_computes_ && !grouped_)
    refuse("options.owner_computes needs options.group, whose ranks have parts of their own");
  if (r.action == array_request::how::create_or_open)
    create_or_open(rt, r);
  else
    open(rt, r);
}

shared_array::~shared_array() = default;

void shared_array::refuse(const char* why) const {
  throw usage_error(errc::invalid_request, "array '" + path() + "': " + why);
}

void shared_array::create_or_open(runtime& rt, const array_request& r) {
  if (r.options.replace)
    refuse("ooc::create_or_open keeps what is there, and options.replace removes it; give one");
  array_request known = r;
  known.action = is_there() ? array_request::how::open : array_request::how::create;
  try {
    open(rt, known);
  } catch (const usage_error& e) {
    const bool was_made_meanwhile = known.action == array_request::how::create && !grouped_ &&
                                    e.code() == std::errc::file_exists;
    if (!was_made_meanwhile) throw;
    known.action = array_request::how::open;
    open(rt, known);
  }
}

/// Whether something has the path; rank 0 looks for all.
bool shared_array::is_there() const {
  const auto look = [&] {
    try {
      (void)local_.file().store()->metadata().lookup(path());
      return true;
    } catch (const error& e) {
      if (e.code() != std::errc::no_such_file_or_directory) throw;
      return false;
    }
  };
  const auto told = group_->together("looking for array '" + path() + "'", [&] {
    return storage::packer().number(rank() == 0 && look() ? 1 : 0).take();
  });
  return storage::unpacker(told.front()).number() != 0;
}

void shared_array::open(runtime& rt, const array_request& r) {
  check_placement(r);
  if (grouped_)
    open_together(rt, r);
  else
    local_.open(rt, r);
}

void shared_array::check_placement(const array_request& r) const {
  if (r.action != array_request::how::create || r.options.placement != placement::by_rank) return;
  if (!grouped_)
    refuse("placement::by_rank needs options.group, whose ranks have parts to be placed");
  if (r.options.stripes != striping{})
    refuse("options.stripes and placement::by_rank both say how the file is dealt out; give one");
}

void shared_array::open_together(runtime& rt, const array_request& r) {
  process_group& g = *group_;
  array_file& file = local_.file();
  storage::store_core& core = *file.store();
  const std::string& path = file.path();
  const bool leads = g.rank() == 0;
  const bool creates = r.action == array_request::how::create;
  const std::string call = call_text(path, r);
  const bool by_rank = creates && r.options.placement == placement::by_rank;
  const std::vector<bytes> facts = g.together(call, [&] {
    rt.pager().account_store(file.store(), core.staging_bytes());
    return storage::packer()
        .number(rt.pager().default_block_bytes())
        .numbers(by_rank ? near_nodes(core) : node_list{})
        .take();
  });
  const std::uint64_t block = storage::unpacker(facts.front()).number();
  const auto set_up = [&](const array_plan& plan) {
    local_.set_up(rt, r, plan, sharing(plan.geometry, plan.stripes));
  };

  // A rank whose budget is too small says so before anything is made.
  array_plan plan{array_geometry({.extents = {1}, .block_bytes = page_bytes}), {}, 0};
  if (creates)
    g.together("memory for " + call, [&] {
      const auto nodes = static_cast<std::uint32_t>(core.nodes().size());
      plan = plan_new(path, r, block, nodes);
      if (by_rank) plan.stripes = stripes_by_rank(path, plan.geometry, near_ranks(facts), nodes);
      set_up(plan);
      return bytes{};
    });
  const std::vector<bytes> entries = g.together(call, [&] {
    if (!leads) return bytes{};
    if (creates)
      file.create(r, plan);
    else
      file.open();
    const storage::entry& meta = file.entry();
    return storage::packer()
        .number(meta.capability ? 1 : 0)
        .bytes(storage::encode_entry(meta))
        .take();
  });
  const auto set_up_file = [&] {
    if (!leads) {
      storage::unpacker told(entries.front());
      const bool has_capability = told.number() != 0;  // which everybody must renew for himself
      // Not another opening: the leader's counts for all.
      file.use(core.opened(has_capability ? file.look_up_again()
                                         : storage::decode_entry(told.bytes())));
    }
    if (!creates) plan = plan_existing(path, r, file.entry(), block);
    if (!leads || !creates)
      file.claim(leads ? writing_as(r) : writing::no, r.options.wait_for_writer);
    if (!creates) set_up(plan);
    local_.attach(plan.geometry);
    return bytes{};
  };
  try {
    g.together("files for " + call, set_up_file);
  } catch (...) {
    if (leads && creates) core.remove(path);  // a failure leaves no file behind
    throw;
  }
}

void shared_array::set_in_progress(std::string_view what) {
  local_.check_writable("be marked");
  group_->together("marking '" + path() + "'", [&] {
    if (rank() == 0) local_.file().set_in_progress(what);
    return bytes{};
  });
}

// --- parts

std::pair<std::size_t, std::size_t> shared_array::rows_of(int rank) const {
  local_.check_open();
  if (rank < 0 || rank >= ranks())
    throw usage_error(errc::invalid_request, "array '" + path() + "': there is no rank " +
                                                 std::to_string(rank) + " among " +
                                                 std::to_string(ranks()));
  const index_box part =
      part_of(geometry(), local_.facts().stripes, static_cast<std::uint64_t>(rank),
              static_cast<std::uint64_t>(ranks()));
  return {part.lower[0], part.upper[0]};
}

/// What this rank may write to, and what that means for blocks.
array_sharing shared_array::sharing(const array_geometry& g, const striping& s) const {
  array_sharing with;
  if (ranks() == 1) return with;
  const index_box part =
      part_of(g, s, static_cast<std::uint64_t>(rank()), static_cast<std::uint64_t>(ranks()));
  const part_blocks blocks = blocks_of_part(g, part);
  with.by_ranks = true;
  with.log = log_.get();
  with.blocks.near = blocks.near;
  if (owner_computes_) {
    with.part = part;
    if (!log_) with.blocks.own = blocks.own;  // else the elements that are changed must be known
    with.blocks.may_write = blocks.touched;
  }
  return with;
}

void shared_array::check_in_part(const index_box& box) const {
  const auto [first, last] = rows_of(rank());
  if (box.lower[0] == box.upper[0] || (box.lower[0] >= first && box.upper[0] <= last)) return;
  throw usage_error(errc::invalid_request,
                    "array '" + path() + "': rows " + std::to_string(box.lower[0]) + " to " +
                        std::to_string(box.upper[0]) + " cannot be pinned for writing on rank " +
                        std::to_string(rank()) + ", whose part is rows " + std::to_string(first) +
                        " to " + std::to_string(last) + " (owner_computes)");
}

pinned_region shared_array::pin(box_view b, access_mode mode) {
  if (owner_computes_ && mode == access_mode::write) {
    local_.check_writable("be pinned for writing");
    check_in_part(local_.checked(b, "pin()"));
  }
  return local_.pin(b, mode);
}

// --- sync

void shared_array::sync(durability d) {
  local_.check_open();
  if (!grouped_) return local_.writeback(d);
  const bool durable = d == durability::durable;
  const std::string call = durable ? "durable sync" : "sync";
  const notices told =
      exchange_writes(call, std::vector<block_range>{{0, segment().blocks()}});
  if (!durable || !local_.facts().writable) return take_in(call, told);
  group_->together("making '" + path() + "' durable", [&] {
    take_in(call, told);  // here, as it may fail on one rank, and the others must not wait for it
    if (rank() == 0) local_.file().make_durable();
    if (rank() == ranks() - 1) local_.file().make_entry_durable();
    return bytes{};
  });
}

void shared_array::sync_halo(std::size_t rows) {
  local_.check_open();
  if (!grouped_) return;
  const std::string call = "sync_halo(" + std::to_string(rows) + ")";
  take_in(call, exchange_writes(call, halo_blocks(rows)));
  // The next sweep begins with the rows before its part, which another rank has just written.
  const auto [first, last] = rows_of(rank());
  if (first == last) return;
  const std::uint64_t before = std::min<std::uint64_t>(rows, first);
  const array_geometry& g = geometry();
  segment().fetch_before_sweep(g.blocks_of(whole_rows(g, first - before, first)));
}

/// The blocks that hold rows within `rows` of a border between parts: the same on all ranks.
std::vector<block_range> shared_array::halo_blocks(std::size_t rows) const {
  const array_geometry& g = geometry();
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
// then on is current; what was loaded before, or is on its way, is dropped by take_in() where
// another rank has written.  If the exchange fails, the blocks that were written, and the checking
// mode's accesses, stay on record for the next.
//
// The checking mode writes back and forgets every block.  What was read before the exchange comes
// before all that is written after it; what was written outside `which` is shown to nobody, and
// stays on record, to be compared with what others do from then on.
shared_array::notices shared_array::exchange_writes(const std::string& call,
                                                    std::span<const block_range> which) {
  std::vector<block_range> written;
  accesses noted;
  notices told;
  try {
    told = group_->together(call + " of '" + path() + "'", [&] {
      local_.check_unpinned(call.c_str());
      if (local_.facts().writable)
        throw_if(log_ ? segment().writeback() : segment().writeback(which));
      written = segment().take_written(which);
      storage::packer p;
      p.bytes(packed_notice(written));
      if (log_) {
        noted = log_->take();
        noted.add(segment().take_read());
        p.bytes(noted.packed());
      }
      return p.take();
    });
  } catch (...) {
    segment().note_written(written);
    if (log_) log_->put_back(noted);
    throw;
  }
  if (log_) log_->put_back(noted.left_by(which, segment().block_bytes()));
  return told;
}

void shared_array::take_in(const std::string& call, const notices& told) {
  forget_others_writes(call, told);
  if (log_) report_conflicts(told);
}

void shared_array::forget_others_writes(const std::string& call, const notices& told) {
  std::vector<block_range> others;
  if (log_) {
    others.push_back({0, segment().blocks()});  // so that the first read of a block is seen
  } else {
    for (std::size_t r = 0; r < told.size(); ++r) {
      if (static_cast<int>(r) == rank()) continue;
      const std::vector<block_range> theirs =
          unpacked_notice(storage::unpacker(told[r]).bytes());
      others.insert(others.end(), theirs.begin(), theirs.end());
    }
  }
  if (segment().invalidate(merged(std::move(others)), false) != segment::invalidated::done)
    throw usage_error(errc::busy, "array '" + path() + "': another thread of rank " +
                                      std::to_string(rank()) +
                                      " wrote to it or pinned it during " + call);
}

// --- the checking mode

void shared_array::note_read(const std::byte* element, std::size_t size) {
  bool& exact = exact_access();
  exact = true;
  // The last byte may lie in the next block.
  for (const std::byte* p : {element, element + size - 1}) {
    segment().serve_read_of(p);
    static_cast<void>(*static_cast<const volatile std::byte*>(p));
  }
  exact = false;
  log_->note_read({static_cast<std::uint64_t>(element - segment().base()), size});
}

// What is left of sync() for an array that closes: nobody looks at it any more.
void shared_array::check_last_epoch() {
  report_conflicts(exchange_writes("close", std::vector<block_range>{{0, segment().blocks()}}));
}

void shared_array::report_conflicts(const notices& told) const {
  std::vector<accesses> by_rank;
  for (const bytes& n : told) {
    storage::unpacker u(n);
    u.bytes();
    by_rank.push_back(accesses::unpacked(u.bytes()));
  }
  const array_geometry& g = geometry();
  const std::vector<conflict> found = find_conflicts(g, by_rank);
  if (!found.empty())
    throw usage_error(errc::conflict,
                      "array '" + path() + "': since the last sync " + describe(found, g.rank()));
}

void shared_array::close() {
  if (!local_.facts().open) return;
  const auto finish = [&] {
    local_.check_unpinned("close()");
    local_.writeback(durability::acknowledged);
  };
  if (log_)
    check_last_epoch();
  else if (grouped_)
    group_->together("close of '" + path() + "'", [&] { return finish(), bytes{}; });
  else
    finish();
  local_.close();
}

}  // namespace ooc::detail
