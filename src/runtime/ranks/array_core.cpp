#include "oocarray/detail/array_core.hpp"

#include <algorithm>
#include <stdexcept>

#include "runtime/ranks/array_commit.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "runtime/ranks/shared_opening.hpp"

namespace ooc::detail {

array_core::array_core(runtime& rt, const ooc::store& s, std::string_view path, const array_request& r)
    : array_(std::make_unique<shared_array>(s, path, r)),
      facts_(&array_->local().facts()),
      reads_noted_(array_->log() != nullptr) {
  shared_opening(*array_, rt, r).open();
}

array_core::~array_core() = default;

void array_core::refuse_closed() const {
  array_->local().check_open();  // throws
}

void array_core::check_writable(const char* operation) const { array_->local().check_writable(operation); }

void array_core::out_of_range(std::size_t dimension, std::size_t given) const {
  throw std::out_of_range("array '" + facts_->path + "': index " + std::to_string(given) + " in dimension " +
                          std::to_string(dimension) + " is outside the extent " +
                          std::to_string(facts_->extents[dimension]));
}

void array_core::note_read(const std::byte* element, std::size_t bytes) const { array_->note_read(element, bytes); }

std::vector<std::size_t> array_core::tile_shape() const {
  if (!facts_->tile.empty()) return {facts_->tile.begin(), facts_->tile.end()};
  std::vector<std::size_t> shape(facts_->extents.begin(), facts_->extents.end());
  std::size_t left = std::max<std::size_t>(facts_->block_bytes / facts_->element_size, 1);
  for (std::size_t k = shape.size(); k-- > 0;) {
    const bool whole = shape[k] <= left;
    shape[k] = std::clamp<std::size_t>(shape[k], 1, left);
    left = whole ? left / shape[k] : 1;
  }
  return shape;
}

// --- the array of this process

std::string array_core::current_path() const {
  check_open();
  return array_->local().file().current_path();
}

std::optional<commit_info> array_core::last_commit() const { return last_commit_of(*array_); }
bool array_core::has_committed_extents() const { return ooc::detail::has_committed_extents(*array_); }

void array_core::writeback(durability d) { array_->local().writeback(d); }

std::uint64_t array_core::dirty_blocks() const {
  check_open();
  return array_->local().segment().dirty_blocks();
}

void array_core::invalidate(bool discard) {
  array_->local().check_open();
  array_->local().file().striped()->forget();
  array_->local().invalidate(discard);
}

void array_core::prefetch(box_view b, prefetched which) const { array_->local().prefetch(b, which); }

void array_core::prefetch(std::span<const box_view> boxes) const { array_->local().prefetch(boxes); }

void array_core::advise(access_pattern p) const {
  check_open();
  array_->local().segment().advise(p);
}

void array_core::overwrite(box_view b, promised_blocks which) { array_->local().overwrite(b, which); }

void array_core::clear_overwrite() { array_->local().clear_overwrite(); }

pinned_region array_core::pin(box_view b, access_mode mode) const { return array_->pin(b, mode); }

void array_core::unpin(const pinned_region& r) const noexcept { array_->local().unpin(r); }

void array_core::bring_in(box_view b, access_mode mode) const { array_->local().bring_in(b, mode); }

void array_core::write(box_view b, const std::byte* from) { array_->write(b, from); }

bool is_mapped(const array_core& a, const std::byte* element) noexcept {
  const segment& s = a.shared().local().segment();
  return segment_unit(s, static_cast<std::uint64_t>(element - s.base())).is_mapped();
}

// --- attributes

std::map<std::string, std::string> array_attributes::all() const {
  array_.local().check_open();
  return array_.local().file().attributes();
}

void array_attributes::set(std::string_view key, std::string_view value) const {
  array_.local().check_writable("have its attributes set");
  array_.local().file().set_attribute(key, value);
}

void array_attributes::remove(std::string_view key) const {
  array_.local().check_writable("have an attribute removed");
  array_.local().file().remove_attribute(key);
}

}  // namespace ooc::detail
