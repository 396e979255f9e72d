// Changing the extents.
//
// An array without a group is resized by a group of one.  Rank 0 alone changes the file; it does so
// when every rank has written back and has forgotten the blocks that are to be cut off, and tells
// the others what the file's entry then is.
#include "runtime/ranks/array_resize.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/ranks/array_in_doubt.hpp"
#include "runtime/ranks/write_exchange.hpp"
#include "storage/collective/rank_messages.hpp"

namespace ooc::detail {
namespace {

using shape = std::span<const std::uint64_t>;

[[noreturn]] void refuse(const shared_array& a, const std::string& what) {
  throw usage_error(errc::invalid_request, "array '" + a.path() + "': " + what);
}

void check_resizable(const shared_array& a, shape extents, bool may_move) {
  a.local().check_writable("be resized");
  const storage::entry& file = a.local().file().entry();
  if (file.in_place)
    throw usage_error(errc::invalid_request,
                      "array '" + a.path() +
                          "' is a file in place, whose size stays as it is; copy it to an array of a "
                          "store to resize it");
  const array_geometry& now = a.geometry();
  if (extents.size() != now.rank())
    refuse(a, std::to_string(extents.size()) + " extents, and the array has " + std::to_string(now.rank()) +
                  " dimensions");
  for (std::size_t k = 0; k < extents.size(); ++k) {
    const std::string extent = "the extent of dimension " + std::to_string(k);
    if (k > 0 && extents[k] != now.extents()[k]) {
      const std::string stays = extent + " stays " + std::to_string(now.extents()[k]) + ", ";
      if (file.array.tile.empty())
        refuse(a, stays +
                      "as the file is in row-major order and grows in dimension 0 only; copy the array to one with "
                      "options.order = ooc::file_order::tiled and options.max_extents (ooc::copy)");
      if (!has_reserved_grid(file.array))
        refuse(a, stays +
                      "as options.max_extents at creation had no number for it; copy the array to one that has "
                      "(ooc::copy)");
      if (now.tile().empty() && !may_move)
        refuse(a, stays +
                      "as with layout_right another one would move elements in memory; open the array with "
                      "layout_tiled to resize it");
    }
    const std::uint64_t least = k == 0 ? 0 : 1;
    if (extents[k] < least || extents[k] > now.max_extents()[k])
      refuse(a, extent + " can be " + std::to_string(least) + " to " + std::to_string(now.max_extents()[k]) + ", not " +
                    std::to_string(extents[k]) + "; the limit is options.max_extents at creation");
  }
  if (now.resized(extents).blocks() > now.max_blocks())
    refuse(a, "the row-major image of the extents " + to_string(extents) +
                  " has more addresses than an array can have; "
                  "open it with layout_tiled to resize it");
  if (file.array.element_type.empty()) refuse(a, "the file is not recorded as an array and cannot be resized as one");
  a.local().check_unpinned("resize()");
}

void exchange_file(shared_array& a, const std::string& call, const std::function<storage::opened_file()>& change) {
  array_file& file = a.local().file();
  const bool leads = a.rank() == 0;
  shared_array* const arrays[] = {&a};
  storage::opened_file changed;
  const auto told = changed_by_rank_0(  // when all have come: blocks that are cut off are on their way nowhere then
      arrays, "file for " + call,
      "nobody knows whether the file of array '" + a.path() + "' was changed: close the array and open it again", [&] {
        changed = change();
        return storage::encode_entry(changed.meta);
      });
  const std::string was_changed = "the file of array '" + a.path() + "' was changed: close the array and open it again";
  const auto use_it = [&] {
    if (leads) return process_group::bytes{};
    storage::entry e = storage::decode_entry(told);
    e.opened = file.entry().opened;
    e.capability = file.entry().capability;
    // It ends at the size that it was signed for, and each process must have its own.
    if (e.capability) e.capability = file.store()->metadata().find(e.id).capability;
    changed = file.store()->opened(std::move(e));
    return process_group::bytes{};
  };
  or_refuse_all(arrays, was_changed, [&] { a.group().together("right to the file for " + call, use_it); });
  file.use(std::move(changed));
}

}  // namespace

void change_file(shared_array& a, const std::string& call, shape extents, extents_change which,
                 const std::function<storage::opened_file()>& change) {
  a.local().clear_overwrite();
  const array_source::state_ptr old = a.local().source().current();
  const array_geometry& was = old->geometry;
  const array_geometry now = was.resized(extents);
  std::vector<block_range> changed{{0, was.blocks()}};
  if (which == extents_change::blocks_at_the_edge) changed = blocks_changed(was, now);
  a.segment().invalidate(changed, true);
  if (which == extents_change::all_blocks) a.owe_nothing();
  const bool fewer = now.memory_bytes() < was.memory_bytes();
  if (fewer) a.segment().shrink(now.blocks(), now.memory_bytes());
  try {
    exchange_file(a, call, change);
  } catch (...) {
    if (fewer) a.segment().grow(was.blocks(), was.memory_bytes());
    throw;
  }
  a.local().attach(now);
  if (!fewer) a.segment().grow(now.blocks(), now.memory_bytes());
  if (which == extents_change::all_blocks) changed = {{0, now.blocks()}};
  a.segment().invalidate(changed, true);  // what was on its way
  if (a.ranks() > 1) {
    const array_sharing with = a.sharing(now, a.local().facts().stripes);
    if (with.part) a.local().source().set_part(*with.part);
    a.segment().set_part(with.blocks);
  }
}

// A block at the array's edge holds less than it could, so what is in memory of the blocks at the
// old and at the new edge must be read again once the edge has moved: the part that appears is
// fill.  So must blocks that are cut off and come again.  Everything is written first, so a failure changes nothing
// of what is to stay; elements that were to be cut off may be gone on those nodes that did it.
//
// The ranks' parts move with the edge: what was a neighbour's block may be written whole from then
// on, so it must not be an old copy.  Hence the sync().
void resize_array(shared_array& a, shape extents, bool may_move) {
  const std::string call = "resize of '" + a.path() + "' to " + to_string(extents);
  a.group().together(call, [&] { return check_resizable(a, extents, may_move), process_group::bytes{}; });
  write_exchange(a).sync_before(call);
  const array_geometry was = a.geometry();
  if (std::ranges::equal(extents, was.extents())) return;
  change_file(a, call, extents, extents_change::blocks_at_the_edge, [&] {
    array_file& file = a.local().file();
    const array_geometry now = was.resized(extents);
    file.fill_uncovered(was, now);
    return file.resized(now);
  });
}

}  // namespace ooc::detail
