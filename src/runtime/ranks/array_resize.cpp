// Changing the first extent.
//
// An array without a group is resized by a group of one.  Rank 0 alone changes the file; it does so
// when every rank has written back and has forgotten the blocks that are to be cut off, and tells
// the others what the file's entry then is.
#include "runtime/ranks/array_resize.hpp"

#include <algorithm>
#include <string>

#include "oocarray/error.hpp"
#include "runtime/ranks/write_exchange.hpp"
#include "storage/collective/rank_messages.hpp"

namespace ooc::detail {
namespace {

void check_resizable(const shared_array& a, std::size_t first_extent) {
  a.local().check_writable("be resized");
  if (a.local().file().entry().in_place)
    throw usage_error(
        errc::invalid_request,
        "array '" + a.path() +
            "' is a file in place, whose size stays as it is; copy it to an array of a "
            "store to resize it");
  const array_geometry& now = a.geometry();
  if (first_extent == 0 || first_extent > now.max_extent())
    throw usage_error(errc::invalid_request, "array '" + a.path() +
                                                 "': the first extent can be 1 to " +
                                                 std::to_string(now.max_extent()) + ", not " +
                                                 std::to_string(first_extent) +
                                                 "; the limit is options.max_extent at creation");
  if (a.local().file().entry().array.element_type.empty())
    throw usage_error(errc::invalid_request,
                      "array '" + a.path() +
                          "': the file is not recorded as an array and cannot be resized as one");
  a.local().check_unpinned("resize()");
}

void resize_file(shared_array& a, const std::string& call, const array_geometry& now, bool grows) {
  array_file& file = a.local().file();
  const bool leads = a.rank() == 0;
  storage::opened_file resized;
  a.group().barrier("blocks for " + call);  // those that are cut off are on their way nowhere
  const auto told = a.group().together("file for " + call, [&] {
    if (!leads) return process_group::bytes{};
    if (grows) file.fill_padding(a.geometry());
    resized = file.resized(now);
    return storage::encode_entry(resized.meta);
  });
  a.group().together("right to the file for " + call, [&] {
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

}  // namespace

// A block at the array's edge holds less than it could, so what is in memory of the blocks at the
// old and at the new edge must be read again once the edge has moved: the part that appears is
// fill. Everything is written first, so a failure changes nothing of what is to stay; rows that
// were to be cut off may be gone on those nodes that did it.
//
// The ranks' parts move with the edge: what was a neighbour's block may be written whole from then
// on, so it must not be an old copy.  Hence the sync().
void resize_array(shared_array& a, std::size_t first_extent) {
  const std::string call = "resize of '" + a.path() + "' to " + std::to_string(first_extent);
  a.group().together(call,
                     [&] { return check_resizable(a, first_extent), process_group::bytes{}; });
  write_exchange(a).sync(durability::acknowledged);
  const array_source::state_ptr old = a.local().source().current();
  const array_geometry& was = old->geometry;
  if (first_extent == was.extents()[0]) return;

  a.local().clear_overwrite();
  const array_geometry now = was.resized(first_extent);
  const bool grows = now.extents()[0] > was.extents()[0];
  if (!grows) a.segment().shrink(now.blocks(), now.memory_bytes());
  try {
    resize_file(a, call, now, grows);
  } catch (...) {
    if (!grows) a.segment().grow(was.blocks(), was.memory_bytes());
    throw;
  }
  a.local().attach(now);
  if (grows) a.segment().grow(now.blocks(), now.memory_bytes());

  index_box edge = now.whole();
  edge.lower[0] = std::min(was.extents()[0], now.extents()[0]) - 1;
  a.segment().invalidate(now.blocks_of(edge), true);
  if (a.ranks() > 1) {
    const array_sharing with = a.sharing(now, a.local().facts().stripes);
    if (with.part) a.local().source().set_part(*with.part);
    a.segment().set_part(with.blocks);
  }
}

}  // namespace ooc::detail
