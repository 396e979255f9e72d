// Changing the first extent.
//
// An array without a group is resized by a group of one.  Rank 0 alone changes the file; it does so
// when every rank has written back and has forgotten the blocks that are to be cut off, and tells
// the others what the file's entry then is.
#include <algorithm>
#include <string>

#include "oocarray/error.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "storage/collective/rank_messages.hpp"

namespace ooc::detail {

void shared_array::check_resizable(std::size_t first_extent) const {
  local_.check_writable("be resized");
  if (local_.file().entry().in_place)
    throw usage_error(errc::invalid_request,
                      "array '" + path() +
                          "' is a file in place, whose size stays as it is; copy it to an array of a "
                          "store to resize it");
  const array_geometry& now = geometry();
  if (first_extent == 0 || first_extent > now.max_extent())
    throw usage_error(errc::invalid_request,
                      "array '" + path() + "': the first extent can be 1 to " +
                          std::to_string(now.max_extent()) + ", not " +
                          std::to_string(first_extent) +
                          "; the limit is options.max_extent at creation");
  if (local_.file().entry().array.element_type.empty())
    throw usage_error(
        errc::invalid_request,
        "array '" + path() +
            "': the file is not recorded as an array and cannot be resized as one");
  local_.check_unpinned("resize()");
}

// A block at the array's edge holds less than it could, so what is in memory of the blocks at the
// old and at the new edge must be read again once the edge has moved: the part that appears is
// fill. Everything is written first, so a failure changes nothing of what is to stay; rows that
// were to be cut off may be gone on those nodes that did it.
//
// The ranks' parts move with the edge: what was a neighbour's block may be written whole from then
// on, so it must not be an old copy.  Hence the sync().
void shared_array::resize(std::size_t first_extent) {
  const std::string call = "resize of '" + path() + "' to " + std::to_string(first_extent);
  group_->together(call, [&] { return check_resizable(first_extent), process_group::bytes{}; });
  sync(durability::acknowledged);
  const array_source::state_ptr old = local_.source().current();
  const array_geometry& was = old->geometry;
  if (first_extent == was.extents()[0]) return;

  local_.clear_overwrite();
  const array_geometry now = was.resized(first_extent);
  const bool grows = now.extents()[0] > was.extents()[0];
  if (!grows) segment().shrink(now.blocks(), now.memory_bytes());
  try {
    resize_file(call, now, grows);
  } catch (...) {
    if (!grows) segment().grow(was.blocks(), was.memory_bytes());
    throw;
  }
  local_.attach(now);
  if (grows) segment().grow(now.blocks(), now.memory_bytes());

  index_box edge = now.whole();
  edge.lower[0] = std::min(was.extents()[0], now.extents()[0]) - 1;
  segment().invalidate(now.blocks_of(edge), true);
  if (ranks() > 1) {
    const array_sharing with = sharing(now, local_.facts().stripes);
    if (with.part) local_.source().set_part(*with.part);
    segment().set_part(with.blocks);
  }
}

void shared_array::resize_file(const std::string& call, const array_geometry& now, bool grows) {
  array_file& file = local_.file();
  const bool leads = rank() == 0;
  storage::opened_file resized;
  group_->barrier("blocks for " + call);  // those that are cut off are on their way nowhere
  const auto told = group_->together("file for " + call, [&] {
    if (!leads) return process_group::bytes{};
    if (grows) file.fill_padding(geometry());
    resized = file.resized(now);
    return storage::encode_entry(resized.meta);
  });
  group_->together("right to the file for " + call, [&] {
    if (leads) return process_group::bytes{};
    storage::entry e = storage::decode_entry(told.front());
    e.capability = file.entry().capability;
    // It ends at the size that it was signed for, and each process must have its own.
    if (e.capability && grows) e.capability = file.store()->metadata().find(e.id).capability;
    resized = file.store()->opened(std::move(e));
    return process_group::bytes{};
  });
  file.use(std::move(resized));
}

}  // namespace ooc::detail
