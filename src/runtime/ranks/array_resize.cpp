// Changing the first extent.
//
// An array without a group is resized by a group of one.  Rank 0 alone changes the file; it does so
// when every rank has written back and has forgotten the blocks that are to be cut off, and tells
// the others what the file's entry then is.
#include <algorithm>
#include <string>

#include "oocarray/error.hpp"
#include "runtime/array/array_entry.hpp"
#include "runtime/array/array_source.hpp"
#include "runtime/geometry/array_geometry.hpp"
#include "runtime/ranks/self_group.hpp"
#include "storage/collective/entry_bytes.hpp"

namespace ooc::detail {

void array_core::check_resizable(std::size_t first_extent) const {
  check_writable("be resized");
  const array_geometry& now = source_->current()->geometry;
  if (first_extent == 0 || first_extent > now.max_extent())
    throw usage_error(errc::invalid_request,
                      "array '" + path_ + "': the first extent can be 1 to " +
                          std::to_string(now.max_extent()) + ", not " +
                          std::to_string(first_extent) +
                          "; the limit is options.max_extent at creation");
  if (entry_->opened.meta.array.element_type.empty())
    throw usage_error(
        errc::invalid_request,
        "array '" + path_ + "': the file is not recorded as an array and cannot be resized as one");
  check_unpinned("resize()");
}

// A block at the array's edge holds less than it could, so what is in memory of the blocks at the
// old and at the new edge must be read again once the edge has moved: the part that appears is
// fill. Everything is written first, so a failure changes nothing of what is to stay; rows that
// were to be cut off may be gone on those nodes that did it.
//
// The ranks' parts move with the edge: what was a neighbour's block may be written whole from then
// on, so it must not be an old copy.  Hence the sync().
void array_core::resize(std::size_t first_extent) {
  alone only;
  process_group& group = group_ ? *group_ : only;
  const std::string call = "resize of '" + path_ + "' to " + std::to_string(first_extent);
  group.together(call, [&] { return check_resizable(first_extent), process_group::bytes{}; });
  sync(durability::acknowledged);
  const array_source::state_ptr old = source_->current();
  const array_geometry& was = old->geometry;
  if (first_extent == was.extents()[0]) return;

  clear_overwrite();
  const array_geometry now = was.resized(first_extent);
  const bool grows = now.extents()[0] > was.extents()[0];
  if (!grows) segment_->shrink(now.blocks(), now.memory_bytes());
  try {
    resize_file(group, call, now, grows);
  } catch (...) {
    if (!grows) segment_->grow(was.blocks(), was.memory_bytes());
    throw;
  }
  source_->set(now, entry_->opened.file);
  if (grows) segment_->grow(now.blocks(), now.memory_bytes());

  index_box edge = now.whole();
  edge.lower[0] = std::min(was.extents()[0], now.extents()[0]) - 1;
  segment_->invalidate(now.blocks_of(edge), true);
  if (ranks() > 1) segment_->set_part(limit_to_part(now, stripes()));
}

void array_core::resize_file(process_group& group, const std::string& call,
                             const array_geometry& now, bool grows) {
  storage::store_core& core = *store_.core();
  const bool leads = group.rank() == 0;
  storage::opened_file resized;
  group.barrier("blocks for " + call);  // those that are cut off are on their way nowhere
  const auto told = group.together("file for " + call, [&] {
    if (!leads) return process_group::bytes{};
    if (grows) fill_padding();
    resized = core.resize(entry_->opened, now.file_bytes(),
                          {now.extents().begin(), now.extents().end()});
    return storage::packed_entry(resized.meta);
  });
  if (!leads) {
    storage::entry e = storage::unpacked_entry(told.front());
    e.capability = entry_->opened.meta.capability;
    resized = core.adopt(std::move(e));
  }
  entry_->opened = std::move(resized);
}

// A tiled file keeps whole tiles: rows that were cut off, or never existed, lie in the padding of
// its last row of tiles and become visible as it grows.
void array_core::fill_padding() {
  const array_source::state_ptr now = source_->current();
  const std::vector<byte_run> padding = now->geometry.file_padding();
  if (padding.empty()) return;
  std::vector<std::byte> bytes(padding.front().length);  // all are of one length
  const std::vector<std::byte>& fill = entry_->opened.meta.fill;
  if (!fill.empty())
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = fill[i % fill.size()];
  for (const byte_run& run : padding)
    throw_if(now->file->write(request::contiguous(run.offset, run.length), bytes.data()));
}

}  // namespace ooc::detail
