#include "runtime/ranks/shared_array.hpp"

#include "oocarray/error.hpp"
#include "runtime/geometry/access_log.hpp"
#include "runtime/geometry/partition.hpp"
#include "runtime/geometry/write_notices.hpp"
#include "runtime/pager/exact_access.hpp"
#include "runtime/ranks/self_group.hpp"

namespace ooc::detail {

shared_array::shared_array(const ooc::store& s, std::string_view path, const array_request& r)
    : group_(r.options.group ? r.options.group : std::make_shared<alone>()),
      grouped_(r.options.group != nullptr),
      owner_computes_(r.options.owner_computes),
      shared_(r.options.shared),
      local_(s, path, r) {
  if (r.options.checking == check_conflicts && ranks() > 1) log_ = std::make_unique<access_log>();
}

shared_array::~shared_array() = default;

std::pair<std::size_t, std::size_t> shared_array::rows_of(int rank) const {
  local_.check_open();
  if (rank < 0 || rank >= ranks())
    throw usage_error(errc::invalid_request, "array '" + path() + "': there is no rank " + std::to_string(rank) +
                                                 " among " + std::to_string(ranks()));
  const index_box part = part_of(geometry(), local_.facts().stripes, static_cast<std::uint64_t>(rank),
                                 static_cast<std::uint64_t>(ranks()));
  return {part.lower[0], part.upper[0]};
}

array_sharing shared_array::sharing(const array_geometry& g, const striping& s) const {
  array_sharing with;
  if (ranks() == 1) return with;
  const index_box part = part_of(g, s, static_cast<std::uint64_t>(rank()), static_cast<std::uint64_t>(ranks()));
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

std::vector<block_range> shared_array::with_owed(std::span<const block_range> which) const {
  std::vector<block_range> all(which.begin(), which.end());
  all.insert(all.end(), owed_.begin(), owed_.end());
  return merged(std::move(all));
}

void shared_array::forget(const std::vector<block_range>& written, const std::string& call) {
  owed_ = with_owed(written);
  if (owed_.empty()) return;
  if (segment().invalidate(owed_, false) != segment::invalidated::done)
    throw usage_error(errc::busy, "array '" + path() + "': another thread of rank " + std::to_string(rank()) +
                                      " wrote to it or pinned it during " + call);
  owed_.clear();
}

void shared_array::check_in_part(box_view b, const char* operation, const char* to_be) const {
  if (!owner_computes_) return;
  local_.check_writable(to_be);
  const index_box box = local_.checked(b, operation);
  const auto [first, last] = rows_of(rank());
  if (box.lower[0] == box.upper[0] || (box.lower[0] >= first && box.upper[0] <= last)) return;
  throw usage_error(errc::invalid_request, "array '" + path() + "': rows " + std::to_string(box.lower[0]) + " to " +
                                               std::to_string(box.upper[0]) + " cannot " + to_be + " on rank " +
                                               std::to_string(rank()) + ", whose part is rows " +
                                               std::to_string(first) + " to " + std::to_string(last) +
                                               " (owner_computes)");
}

pinned_region shared_array::pin(box_view b, access_mode mode) {
  if (mode == access_mode::write) check_in_part(b, "pin()", "be pinned for writing");
  return local_.pin(b, mode);
}

void shared_array::write(box_view b, const std::byte* from) {
  check_in_part(b, "write()", "be written");
  local_.write(b, from);
}

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

}  // namespace ooc::detail
