// Opening, coherence, pins and resizing of an untyped array; see detail/array_core.hpp.
//
// How a request becomes a geometry, and the checks of what a file holds, are in array_plan.cpp.

#include "oocarray/detail/array_core.hpp"

#include <stdexcept>
#include <utility>

#include "oocarray/error.hpp"
#include "runtime/array/array_entry.hpp"
#include "runtime/array/array_plan.hpp"
#include "runtime/array/array_source.hpp"
#include "runtime/array/file_claims.hpp"
#include "runtime/geometry/access_log.hpp"
#include "runtime/geometry/array_geometry.hpp"
#include "runtime/geometry/partition.hpp"
#include "runtime/pager/fault_handler.hpp"
#include "runtime/pager/pager.hpp"
#include "storage/base/log.hpp"
#include "storage/base/packed.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::detail {
namespace {

[[noreturn]] void refuse(errc code, const std::string& what) {
  throw usage_error(code, what);
}

std::string parent_of(const std::string& path) {
  const std::size_t last = path.find_last_not_of('/');
  const std::size_t slash = path.find_last_of('/', last);
  return last == std::string::npos || slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

writing writing_as(const array_request& r) {
  if (r.action == array_request::how::open_read_only) return writing::no;
  if (r.options.owner_computes) return writing::exclusive;  // for all ranks, whose parts are apart
  return r.options.shared || r.options.group ? writing::shared : writing::exclusive;
}

pinned_region::pinned_region() = default;
pinned_region::~pinned_region() = default;
pinned_region::pinned_region(pinned_region&&) noexcept = default;
pinned_region& pinned_region::operator=(pinned_region&&) noexcept = default;

array_core::array_core(runtime& rt, const ooc::store& s, std::string_view path,
                       const array_request& r)
    : path_(path),
      writable_(r.action != array_request::how::open_read_only),
      store_(s),
      entry_(std::make_unique<array_entry>()),
      group_(r.options.group),
      owner_computes_(r.options.owner_computes) {
  if (r.options.checking == check_conflicts && ranks() > 1) log_ = std::make_unique<access_log>();
  if (owner_computes_ && !group_)
    refuse(errc::invalid_request, "array '" + path_ +
                                      "': options.owner_computes needs options.group, whose ranks "
                                      "have parts of their own");
  if (r.action != array_request::how::create_or_open) {
    begin(rt, r);
    return;
  }
  if (r.options.replace)
    refuse(errc::invalid_request, "array '" + path_ +
                                      "': ooc::create_or_open keeps what is there, and options.replace "
                                      "removes it; give one");
  array_request known = r;
  known.action = is_there() ? array_request::how::open : array_request::how::create;
  try {
    begin(rt, known);
  } catch (const usage_error& e) {
    const bool was_made_meanwhile = known.action == array_request::how::create && !group_ &&
                                    e.code() == std::errc::file_exists;
    if (!was_made_meanwhile) throw;
    segment_.reset();
    source_.reset();
    known.action = array_request::how::open;
    begin(rt, known);
  }
}

/// Whether something has the path; rank 0 looks for all.
bool array_core::is_there() const {
  const auto look = [&] {
    try {
      (void)store_.core()->metadata().lookup(path_);
      return true;
    } catch (const error& e) {
      if (e.code() != std::errc::no_such_file_or_directory) throw;
      return false;
    }
  };
  if (!group_) return look();
  const auto told = group_->together("looking for array '" + path_ + "'", [&] {
    return storage::packer().number(group_->rank() == 0 && look() ? 1 : 0).take();
  });
  return storage::unpacker(told.front()).number() != 0;
}

void array_core::begin(runtime& rt, const array_request& r) {
  check_placement(r);
  if (group_)
    come_together(rt, r);
  else if (r.action == array_request::how::create)
    make(rt, r);
  else
    open_existing(rt, r);
}

void array_core::check_placement(const array_request& r) const {
  if (r.action != array_request::how::create || r.options.placement != placement::by_rank) return;
  if (!group_)
    refuse(errc::invalid_request, "array '" + path_ +
                                      "': placement::by_rank needs options.group, whose ranks have "
                                      "parts to be placed");
  if (r.options.stripes != striping{})
    refuse(errc::invalid_request, "array '" + path_ +
                                      "': options.stripes and placement::by_rank both say how the "
                                      "file is dealt out; give one");
}

void array_core::make(runtime& rt, const array_request& r) {
  rt.pager().account_store(store_.core(), store_.core()->staging_bytes());
  const array_plan plan = plan_new(path_, r, rt.pager().default_block_bytes(), store_.nodes());
  // The segment comes first: a budget that is too small is refused before anything is made.
  set_up(rt, r, plan);
  make_file(r, plan);
}

void array_core::open_existing(runtime& rt, const array_request& r) {
  storage::store_core& core = *store_.core();
  rt.pager().account_store(store_.core(), core.staging_bytes());
  storage::opened_file f =
      core.open(path_, writable_ ? storage::open_mode::read_write : storage::open_mode::read);
  const array_plan plan = plan_existing(path_, r, f.meta, rt.pager().default_block_bytes());
  claim_ = std::make_unique<file_claim>(core, f.meta.id, path_, "an ooc_array", writing_as(r),
                                        r.options.wait_for_writer);
  set_up(rt, r, plan);
  entry_->opened = std::move(f);
  source_->set(plan.geometry, entry_->opened.file);
}

void array_core::set_up(runtime& rt, const array_request& r, const array_plan& plan) {
  const array_geometry& g = plan.geometry;
  if (plan.buffers != 0 && plan.buffers > rt.pager().budget() / g.block_bytes())
    refuse(errc::budget_too_small,
           "array '" + path_ + "': " + std::to_string(plan.buffers) + " buffers of " +
               std::to_string(g.block_bytes()) + " bytes exceed the budget of " +
               std::to_string(rt.pager().budget()) +
               " bytes; choose fewer or smaller buffers, or give the runtime more memory");
  buffers_ = plan.buffers;
  source_ = std::make_unique<array_source>(g);
  source_->set_log(log_.get());
  segment_options o;
  o.name = path_;
  o.block_bytes = g.block_bytes();
  o.blocks = g.blocks();
  o.max_blocks = g.max_blocks();
  o.bytes = g.memory_bytes();
  o.max_resident = plan.buffers;
  o.writable = writable_;
  o.shared = r.options.shared || ranks() > 1;
  if (ranks() > 1) {
    o.part = limit_to_part(g, plan.stripes);
    o.note_reads = log_ != nullptr;
  }
  o.end_owner = [this] { end_with_runtime(); };
  segment_ = std::make_unique<detail::segment>(rt.pager(), std::move(o), *source_);
  if (r.options.pattern != access_pattern::automatic) segment_->advise(r.options.pattern);
}

void array_core::make_file(const array_request& r, const array_plan& plan) {
  storage::store_core& core = *store_.core();
  const array_geometry& g = plan.geometry;
  storage::new_file f;
  f.size = g.file_bytes();
  f.striping = plan.stripes;
  f.sparse = r.options.sparse;
  f.fill = r.fill;
  f.array = plan.description;
  f.mode = r.options.mode;

  if (const std::string parent = parent_of(path_); !parent.empty()) {
    try {
      core.metadata().mkdir(parent, 0755, true);
    } catch (const error& e) {
      if (e.code() != std::errc::file_exists) throw;
      throw usage_error(
          std::make_error_code(std::errc::not_a_directory),
          "'" + path_ + "' cannot be made: '" + parent + "' or a part of it is a file");
    }
  }
  if (r.options.replace) {
    try {
      const storage::entry old = core.metadata().lookup(path_);
      if (old.kind == storage::entry_kind::file) {
        const file_claim unused(core, old.id, path_, "an ooc_array", writing::exclusive,
                                r.options.wait_for_writer);
        core.remove(path_);
      } else {
        throw usage_error(std::make_error_code(std::errc::is_a_directory),
                          "'" + path_ + "' is a folder, and options.replace replaces files only: take "
                          "another name, or remove the folder first");
      }
    } catch (const error& e) {
      if (e.code() != std::errc::no_such_file_or_directory) throw;
    }
  }
  try {
    entry_->opened = core.create(path_, f);
  } catch (const error& e) {
    if (e.code() != std::errc::file_exists) throw;
    if (core.metadata().lookup(path_).kind == storage::entry_kind::folder)
      throw usage_error(e.code(), "'" + path_ +
                                      "' exists already, as a folder: take another name, or remove the "
                                      "folder first");
    throw usage_error(e.code(), "'" + path_ +
                                    "' exists already; open it with ooc::open, create it with "
                                    "options.replace = true, or take what is there with "
                                    "ooc::create_or_open");
  }
  claim_ = std::make_unique<file_claim>(core, entry_->opened.meta.id, path_, "an ooc_array",
                                        writing_as(r), r.options.wait_for_writer);
  source_->set(g, entry_->opened.file);
}

array_core::~array_core() {
  if (!is_open()) return;
  if (fault_handler::in_forked_child()) return;  // the parent's data, and none of its threads
  write_back_or_report();
}

void array_core::write_back_or_report() noexcept {
  try {
    const failure f = writable_ ? segment_->writeback() : failure{};
    if (f)
      log_error("array '" + path_ + "' closed with " + std::to_string(segment_->dirty_blocks()) +
                " modified blocks that could not be written; they are lost: " + f.what);
  } catch (const std::exception& e) {
    log_error("array '" + path_ + "' closed; modified blocks may be lost: " + e.what());
  }
}

// --- facts

std::byte* array_core::base() const noexcept {
  return segment_ ? segment_->base() : nullptr;
}

// The state of the source changes in resize() only, during which nobody else may use the array: the
// spans stay valid until then.
std::span<const std::uint64_t> array_core::extents() const noexcept {
  return source_->current()->geometry.extents();
}
std::span<const std::uint64_t> array_core::tile() const noexcept {
  return source_->current()->geometry.tile();
}
std::size_t array_core::max_extent() const noexcept {
  return source_->current()->geometry.max_extent();
}
std::uint64_t array_core::block_bytes() const noexcept {
  return source_->current()->geometry.block_bytes();
}
striping array_core::stripes() const {
  return entry_->opened.meta.striping;
}

ooc::buffering array_core::buffers() const noexcept {
  const array_source::state_ptr now = source_->current();
  const std::uint64_t block = now->geometry.block_bytes();
  return {buffers_, block / now->geometry.element_size(), block};
}

std::uint64_t array_core::dirty_blocks() const {
  check_open();
  return segment_->dirty_blocks();
}

// --- checks

void array_core::check_open() const {
  if (!is_open()) refuse(errc::closed, "array '" + path_ + "' has been closed");
}

void array_core::check_writable(const char* operation) const {
  check_open();
  if (!writable_)
    refuse(errc::invalid_request, "array '" + path_ + "' is open for reading only, so it cannot " +
                                      operation + "; open it with ooc::open");
}

void array_core::check_unpinned(const char* operation) const {
  if (pins_ != 0)
    refuse(errc::busy,
           "array '" + path_ + "' has pinned regions; release them before " + operation);
}

index_box array_core::checked(box_view b, const char* operation) const {
  check_open();
  const std::span<const std::uint64_t> e = extents();
  index_box box;
  bool good = b.lower.size() == e.size() && b.upper.size() == e.size();
  for (std::size_t k = 0; good && k < e.size(); ++k) {
    good = b.lower[k] <= b.upper[k] && b.upper[k] <= e[k];
    box.lower[k] = b.lower[k];
    box.upper[k] = b.upper[k];
  }
  if (!good)
    refuse(errc::invalid_request, std::string(operation) + " of array '" + path_ +
                                      "': the box from " +
                                      to_string({b.lower.begin(), b.lower.end()}) + " to " +
                                      to_string({b.upper.begin(), b.upper.end()}) +
                                      " does not lie within the extents " + to_string(e));
  return box;
}

void array_core::out_of_range(std::size_t dimension, std::size_t given) const {
  throw std::out_of_range("array '" + path_ + "': index " + std::to_string(given) +
                          " in dimension " + std::to_string(dimension) + " is outside the extent " +
                          std::to_string(extents()[dimension]));
}

// --- coherence

void array_core::writeback(durability d) {
  check_open();
  if (!writable_) return;
  throw_if(segment_->writeback());
  if (d == durability::acknowledged) return;
  make_data_durable();
  store_.core()->metadata().sync();  // the file's entry with it
}

/// What nodes have acknowledged, whoever wrote it.
void array_core::make_data_durable() {
  failure f = entry_->opened.file->sync();
  if (f) f.what = "array '" + path_ + "' cannot be made durable: " + f.what;
  throw_if(f);
}

void array_core::invalidate(bool discard) {
  check_open();
  switch (segment_->invalidate(discard)) {
    case segment::invalidated::done:
      return;
    case segment::invalidated::dirty:
      refuse(errc::dirty, "array '" + path_ + "' has " + std::to_string(segment_->dirty_blocks()) +
                              " modified blocks; call writeback() before invalidate(), or "
                              "invalidate(ooc::discard) to lose them");
    case segment::invalidated::pinned:
      refuse(errc::busy,
             "array '" + path_ + "' has pinned regions; release them before invalidate()");
  }
}

// --- hints

void array_core::prefetch(box_view b) const {
  const index_box box = checked(b, "prefetch()");
  segment_->prefetch(source_->current()->geometry.blocks_of(box));
}

void array_core::prefetch_ahead(box_view b) const {
  const index_box box = checked(b, "prefetch()");
  std::vector<block_range> wanted;
  for (const block_range& r : source_->current()->geometry.blocks_of(box))
    for (block_index at = r.first; at < r.last; ++at)
      if (!source_->promised(at)) wanted.push_back({at, at + 1});
  segment_->prefetch(wanted);
}

void array_core::advise(access_pattern p) const {
  check_open();
  segment_->advise(p);
}

void array_core::overwrite(box_view b) {
  check_writable("be overwritten");
  const index_box box = checked(b, "overwrite()");
  const std::vector<block_range> blocks = source_->current()->geometry.blocks_of(box);
  if (blocks.empty()) return;
  source_->promise(box);
  segment_->promise(blocks);
}

void array_core::clear_overwrite() {
  check_open();
  segment_->clear_promises();
  source_->clear_promises();
}

// --- pins

pinned_region array_core::pin(box_view b, access_mode mode) const {
  if (mode == access_mode::write) check_writable("be pinned for writing");
  const index_box box = checked(b, "pin()");
  if (mode == access_mode::write) check_in_part(box);
  const array_source::state_ptr now = source_->current();
  pinned_region region;
  region.mode = mode;
  region.blocks = now->geometry.blocks_of(box);
  throw_if(segment_->pin(region.blocks, mode));  // first: a box that fits has few enough runs
  ++pins_;
  try {
    for (const byte_run& run : now->geometry.runs_of(box))
      region.rows.push_back({base() + run.offset, run.length});
  } catch (...) {
    unpin(region);
    throw;
  }
  return region;
}

void array_core::unpin(const pinned_region& r) const noexcept {
  if (segment_) segment_->unpin(r.blocks, r.mode);  // else it went with the runtime
  --pins_;
}

void array_core::close() {
  if (!is_open()) return;
  const auto finish = [&] {
    check_unpinned("close()");
    if (writable_) throw_if(segment_->writeback());
  };
  if (log_)
    check_last_epoch();
  else if (group_)
    group_->together("close of '" + path_ + "'", [&] { return finish(), process_group::bytes{}; });
  else
    finish();
  let_go(false);
}

// Of one process alone, also where a group shares the array: the others may be long gone.
void array_core::end_with_runtime() noexcept {
  write_back_or_report();
  let_go(true);
}

void array_core::let_go(bool with_runtime) noexcept {
  segment_->close(with_runtime);
  closed_ = std::move(segment_);
  claim_.reset();
}

}  // namespace ooc::detail
