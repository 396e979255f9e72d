// Opening, coherence, promises and pins of an array of one process; see local_array.hpp.
//
// How a request becomes a geometry, and the checks of what a file holds, are in array_plan.cpp.

#include "runtime/array/local_array.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/pager/fault_handler.hpp"
#include "runtime/pager/pager.hpp"
#include "storage/base/log.hpp"
#include "storage/base/lost_data.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::detail {
namespace {

/// The ones of `blocks` of which the box has all elements, or those of which it has only some.
std::vector<block_range> blocks_of_box(const array_geometry& g, const index_box& box,
                                       std::span<const block_range> blocks, bool all_of_them) {
  std::vector<block_range> chosen;
  for (const block_range& r : blocks)
    for (block_index b = r.first; b < r.last; ++b) {
      if (g.covers(b, box) != all_of_them) continue;
      if (!chosen.empty() && chosen.back().last == b)
        ++chosen.back().last;
      else
        chosen.push_back({b, b + 1});
    }
  return chosen;
}

/// A block that is in memory and may be written.
class writable_block {
 public:
  writable_block(segment& s, block_index b) : segment_(s), which_{b, b + 1} {
    throw_if(s.pin({&which_, 1}, access_mode::write));
  }
  ~writable_block() { segment_.unpin({&which_, 1}, access_mode::write); }
  writable_block(const writable_block&) = delete;
  writable_block& operator=(const writable_block&) = delete;

 private:
  segment& segment_;
  const block_range which_;
};

}  // namespace

pinned_region::pinned_region() = default;
pinned_region::~pinned_region() = default;
pinned_region::pinned_region(pinned_region&&) noexcept = default;
pinned_region& pinned_region::operator=(pinned_region&&) noexcept = default;

local_array::local_array(const ooc::store& s, std::string_view path, const array_request& r)
    : file_(s.core(), path, r.action != array_request::how::open_read_only, r.options.unfinished == open_unfinished) {
  facts_.path = path;
  facts_.writable = r.action != array_request::how::open_read_only;
}

void local_array::open(runtime& rt, const array_request& r) {
  storage::store_core& core = *file_.store();
  const std::uint64_t default_block = rt.pager().default_block_bytes();
  rt.pager().account_store(file_.store(), core.staging_bytes());
  if (r.action == array_request::how::create) {
    const array_plan plan = plan_new(facts_.path, r, default_block, static_cast<std::uint32_t>(core.nodes().size()));
    // The segment comes first: a budget that is too small is refused before anything is made.
    set_up(rt, r, plan, {});
    file_.create(r, plan);
    attach(plan.geometry);
  } else {
    const auto planned = [&](const storage::entry& e) { return plan_existing(facts_.path, r, e, default_block); };
    file_.open(writing_as(r), r.options.wait_for_writer, [&](const storage::entry& e) { (void)planned(e); });
    const array_plan plan = planned(file_.entry());
    set_up(rt, r, plan, {});
    attach(plan.geometry);
  }
}

void local_array::set_up(runtime& rt, const array_request& r, const array_plan& plan, const array_sharing& with) {
  const array_geometry& g = plan.geometry;
  if (plan.buffers != 0 && plan.buffers > rt.pager().budget() / g.block_bytes())
    refuse(errc::budget_too_small, "array '" + facts_.path + "': " + std::to_string(plan.buffers) + " buffers of " +
                                       std::to_string(g.block_bytes()) + " bytes exceed the budget of " +
                                       std::to_string(rt.pager().budget()) +
                                       " bytes; choose fewer or smaller buffers, or give the runtime more memory");
  if (const auto packed = file_.striped() ? file_.striped()->unpacked() : nullptr)
    rt.pager().account_store(packed, packed->memory(rt.pager().budget()));  // the same, however often it is open
  facts_.open = false;
  segment_.reset();  // before its sources
  source_ = std::make_unique<array_source>(g);
  source_->set_log(with.log);
  if (with.part) source_->set_part(*with.part);
  segment_options o;
  o.name = facts_.path;
  o.block_bytes = g.block_bytes();
  o.blocks = g.blocks();
  o.max_blocks = g.max_blocks();
  o.bytes = g.memory_bytes();
  o.max_resident = plan.buffers;
  o.writable = facts_.writable;
  o.shared = r.options.shared || with.by_ranks;
  o.part = with.blocks;
  o.note_reads = with.log != nullptr;
  o.temporary = r.options.temporary;
  o.end_owner = [this] {  // asks no other rank: they may be long gone
    write_back_or_report();
    close(true);
  };
  if (g.tile().empty()) {
    grain_source_ = std::make_unique<array_source>(g.with_blocks_of(grain_bytes));
    o.grains = grain_source_.get();
    o.element_bytes = g.element_size();
    o.row_bytes = g.memory_order().stride[0];
  }
  segment_ = std::make_unique<detail::segment>(rt.pager(), std::move(o), *source_);
  if (r.options.pattern != access_pattern::automatic) segment_->advise(r.options.pattern);

  facts_.buffering = {plan.buffers, g.block_bytes() / g.element_size(), g.block_bytes()};
  facts_.block_bytes = g.block_bytes();
  facts_.element_type = plan.description.element_type;
  facts_.element_size = plan.description.element_size;
  facts_.tile.assign(g.tile().begin(), g.tile().end());
  facts_.max_extents.assign(g.max_extents().begin(), g.max_extents().end());
  facts_.base = segment_->base() + g.lead();
  facts_.open = true;
}

void local_array::attach(const array_geometry& g) {
  source_->set(g, file_.striped());
  if (grain_source_) grain_source_->set(g.with_blocks_of(grain_bytes), file_.striped());
  facts_.extents.assign(g.extents().begin(), g.extents().end());
  file_tile_.assign(g.file_tile().begin(), g.file_tile().end());
  facts_.stripes = file_.entry().striping;
}

// --- checks

void local_array::check_open() const {
  if (!facts_.open) refuse(errc::closed, "array '" + facts_.path + "' has been closed");
}

void local_array::check_writable(const char* operation) const {
  check_open();
  if (!facts_.writable)
    refuse(errc::invalid_request, "array '" + facts_.path + "' is open for reading only, so it cannot " + operation +
                                      "; open it with ooc::open");
}

void local_array::check_unpinned(const char* operation) const {
  if (pins_ != 0)
    refuse(errc::busy, "array '" + facts_.path + "' has pinned regions; release them before " + operation);
}

index_box local_array::checked(box_view b, const char* operation) const {
  check_open();
  const std::vector<std::uint64_t>& e = facts_.extents;
  index_box box;
  bool good = b.lower.size() == e.size() && b.upper.size() == e.size();
  for (std::size_t k = 0; good && k < e.size(); ++k) {
    good = b.lower[k] <= b.upper[k] && b.upper[k] <= e[k];
    box.lower[k] = b.lower[k];
    box.upper[k] = b.upper[k];
  }
  if (!good)
    refuse(errc::invalid_request, std::string(operation) + " of array '" + facts_.path + "': the box from " +
                                      to_string({b.lower.begin(), b.lower.end()}) + " to " +
                                      to_string({b.upper.begin(), b.upper.end()}) +
                                      " does not lie within the extents " + to_string(e));
  return box;
}

// --- coherence

void local_array::writeback(durability d) {
  check_open();
  if (!facts_.writable) return;
  throw_if(segment_->writeback());
  if (d == durability::acknowledged) return;
  file_.make_durable();
  file_.make_entry_durable();
}

void local_array::invalidate(bool discard) {
  check_open();
  switch (segment_->invalidate(discard)) {
    case segment::invalidated::done: return;
    case segment::invalidated::dirty:
      refuse(errc::dirty, "array '" + facts_.path + "' has " + std::to_string(segment_->dirty_blocks()) +
                              " modified blocks; call writeback() before invalidate(), or "
                              "invalidate(ooc::discard) to lose them");
    case segment::invalidated::pinned:
      refuse(errc::busy, "array '" + facts_.path + "' has pinned regions; release them before invalidate()");
  }
}

// --- hints

void local_array::prefetch(box_view b, prefetched which) {
  const index_box box = checked(b, "prefetch()");
  const std::vector<block_range> touched = source_->current()->geometry.blocks_of(box);
  if (which == prefetched::all) return segment_->prefetch(touched);
  std::vector<block_range> wanted;
  for (const block_range& r : touched)
    for (block_index at = r.first; at < r.last; ++at)
      if (!source_->promised(at)) wanted.push_back({at, at + 1});
  segment_->prefetch(wanted);
}

void local_array::prefetch(std::span<const box_view> boxes) {
  check_open();
  std::vector<block_range> wanted;
  for (const box_view& b : boxes) {
    const std::vector<block_range> touched = source_->current()->geometry.blocks_of(checked(b, "prefetch()"));
    wanted.insert(wanted.end(), touched.begin(), touched.end());
  }
  segment_->prefetch(wanted);
}

void local_array::overwrite(box_view b, promised_blocks which) {
  check_writable("be overwritten");
  const index_box box = checked(b, "overwrite()");
  const array_source::state_ptr now = source_->current();
  std::vector<block_range> blocks = now->geometry.blocks_of(box);
  if (which == promised_blocks::covered) blocks = blocks_of_box(now->geometry, box, blocks, true);
  if (blocks.empty()) return;
  source_->promise(box);
  try {
    segment_->promise(blocks);
  } catch (...) {
    clear_overwrite();  // else an earlier promise of these blocks would be taken for one of this box
    throw;
  }
}

void local_array::clear_overwrite() {
  check_open();
  segment_->clear_promises();
  source_->clear_promises();
}

// --- pins

pinned_region local_array::pin(box_view b, access_mode mode) {
  if (mode == access_mode::write) check_writable("be pinned for writing");
  const index_box box = checked(b, "pin()");
  const array_source::state_ptr now = source_->current();
  pinned_region region;
  region.mode = mode;
  region.blocks = now->geometry.blocks_of(box);
  throw_if(segment_->pin(region.blocks, mode));  // first: a box that fits has few enough runs
  ++pins_;
  try {
    for (const byte_run& run : now->geometry.runs_of(box))
      region.rows.push_back({segment_->base() + run.offset, run.length});
  } catch (...) {
    unpin(region);
    throw;
  }
  return region;
}

void local_array::unpin(const pinned_region& r) noexcept {
  if (segment_) segment_->unpin(r.blocks, r.mode);  // else it went with the runtime
  --pins_;
}

void local_array::bring_in(box_view b, access_mode mode) {
  const index_box box = checked(b, "bring_in()");
  throw_if(detail::bring_in(*segment_, source_->current()->geometry.blocks_of(box), mode));
}

// Block after block, of which each is all or nothing.  The first and the last one may have other elements of a larger
// promise.  Where an element lies in two blocks, one that has to be read comes before one that only gets zeros.
void local_array::write(box_view b, const std::byte* from) {
  check_writable("be written");
  const index_box box = checked(b, "write()");
  const array_source::state_ptr now = source_->current();
  const array_geometry& g = now->geometry;
  const std::vector<block_range> blocks = g.blocks_of(box);
  if (blocks.empty()) return;
  for (const block_index edge : {blocks.front().first, blocks.back().last - 1})
    if (const block_range it{edge, edge + 1}; !g.covers(edge, box)) segment_->clear_promises({&it, 1});
  segment_->prefetch(blocks_of_box(g, box, blocks, false));
  const std::uint64_t block_bytes = segment_->block_bytes(), size = facts_.element_size;
  std::map<block_index, writable_block> held;
  for (const byte_run& run : g.runs_of(box))
    for (std::uint64_t at = run.offset, end = run.offset + run.length; at < end;) {
      const block_index first = at / block_bytes;
      const std::uint64_t part = std::min(end - at, ceil_div((first + 1) * block_bytes - at, size) * size);
      const block_range which{first, (at + part - 1) / block_bytes + 1};
      if (!held.contains(which.first) || !held.contains(which.last - 1)) {
        held.erase(held.begin(), held.lower_bound(first));
        for (const bool covered : {false, true})
          for (const block_range& r : blocks_of_box(g, box, {&which, 1}, covered))
            for (block_index it = r.first; it < r.last; ++it) held.try_emplace(it, *segment_, it);
      }
      std::memcpy(segment_->base() + at, from, part);
      from += part;
      at += part;
    }
}

// --- the end

local_array::~local_array() {
  if (!facts_.open) return;
  if (fault_handler::in_forked_child()) return;  // the parent's data, and none of its threads
  write_back_or_report();
}

void local_array::write_back_or_report() noexcept {
  if (file_.temporary()) return;
  try {
    const failure f = facts_.writable ? segment_->writeback() : failure{};
    if (!f) return;
    log_error("array '" + facts_.path + "' closed with " + std::to_string(segment_->dirty_blocks()) +
              " modified blocks that could not be written; they are lost: " + f.what);
  } catch (const std::exception& e) {
    log_error("array '" + facts_.path + "' closed; modified blocks may be lost: " + e.what());
  }
  data_were_lost();
}

void local_array::close(bool with_runtime) noexcept {
  segment_->close(with_runtime);
  facts_.open = false;
  facts_.base = nullptr;
  closed_ = std::move(segment_);
  file_.release();
}

}  // namespace ooc::detail
