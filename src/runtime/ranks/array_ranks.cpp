#include "oocarray/detail/array_ranks.hpp"

#include "runtime/ranks/array_collective.hpp"
#include "runtime/ranks/array_commit.hpp"
#include "runtime/ranks/array_resize.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "runtime/ranks/write_exchange.hpp"

namespace ooc::detail {
namespace {

using bytes = process_group::bytes;

/// When all has been written: ranks leave before rank 0 lets go of their claim, and those who get it next meet them.
void leave(shared_array& a) {
  array_file& file = a.local().file();
  if (!a.grouped() || !a.local().facts().writable || file.store()->metadata().claimant().empty()) return;
  a.group().together("end of '" + a.path() + "'", [&] {
    if (a.rank() != 0) file.release();
    return bytes{};
  });
}

}  // namespace

int array_ranks::rank() const noexcept { return array_.rank(); }

std::pair<std::size_t, std::size_t> array_ranks::rows_of(int rank) const { return array_.rows_of(rank); }

void array_ranks::sync(durability d) const { write_exchange(array_).sync(d); }

void array_ranks::sync_halo(std::size_t rows) const { write_exchange(array_).sync_halo(rows); }

void array_ranks::read_all(box_view b, std::byte* to, std::size_t elements) const {
  transfer_all(array_, access_kind::read, b, to, elements);
}

void array_ranks::write_all(box_view b, const std::byte* from, std::size_t elements) const {
  transfer_all(array_, access_kind::write, b, const_cast<std::byte*>(from), elements);
}

void array_ranks::resize(std::span<const std::size_t> extents, bool may_move) const {
  resize_array(array_, std::vector<std::uint64_t>(extents.begin(), extents.end()), may_move);
}

void array_ranks::resize_first(std::size_t extent) const {
  const auto now = array_.geometry().extents();
  std::vector<std::uint64_t> extents(now.begin(), now.end());
  extents.front() = extent;
  resize_array(array_, extents, false);
}

void array_ranks::roll_back() const { roll_back_array(array_); }

void array_ranks::set_in_progress(std::string_view what) const {
  if (array_.local().file().entry().commit) return;  // who opens it next finds the last commit
  array_.local().check_writable("be marked");
  array_.group().together("marking '" + array_.path() + "'", [&] {
    if (array_.rank() == 0) array_.local().file().set_in_progress(what);
    return bytes{};
  });
}

void array_ranks::close() const {
  if (!array_.local().facts().open) return;
  const auto finish = [&] {
    array_.local().check_unpinned("close()");
    if (!array_.local().file().temporary()) array_.local().writeback(durability::acknowledged);
  };
  if (array_.log())
    write_exchange(array_).check_last();
  else if (array_.grouped())
    array_.group().together("close of '" + array_.path() + "'", [&] { return finish(), bytes{}; });
  else
    finish();
  try {
    leave(array_);
  } catch (...) {
    array_.local().close();
    throw;
  }
  array_.local().close();
}

}  // namespace ooc::detail
