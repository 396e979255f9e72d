#include "oocarray/detail/array_core.hpp"

#include <stdexcept>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

array_core::array_core(runtime& rt, const ooc::store& s, std::string_view path,
                       const array_request& r)
    : array_(std::make_unique<shared_array>(rt, s, path, r)),
      facts_(&array_->local().facts()),
      reads_noted_(array_->notes_reads()) {}

array_core::~array_core() = default;

void array_core::refuse_closed() const {
  array_->local().check_open();  // throws
}

void array_core::check_writable(const char* operation) const {
  array_->local().check_writable(operation);
}

void array_core::out_of_range(std::size_t dimension, std::size_t given) const {
  throw std::out_of_range("array '" + facts_->path + "': index " + std::to_string(given) +
                          " in dimension " + std::to_string(dimension) + " is outside the extent " +
                          std::to_string(facts_->extents[dimension]));
}

void array_core::note_read(const std::byte* element, std::size_t bytes) const {
  array_->note_read(element, bytes);
}

// --- the array of this process

void array_core::writeback(durability d) {
  array_->local().writeback(d);
}

std::uint64_t array_core::dirty_blocks() const {
  check_open();
  return array_->local().segment().dirty_blocks();
}

void array_core::invalidate(bool discard) {
  array_->local().invalidate(discard);
}

void array_core::prefetch(box_view b, prefetched which) const {
  array_->local().prefetch(b, which);
}

void array_core::prefetch(std::span<const box_view> boxes) const {
  array_->local().prefetch(boxes);
}

void array_core::advise(access_pattern p) const {
  check_open();
  array_->local().segment().advise(p);
}

void array_core::overwrite(box_view b) {
  array_->local().overwrite(b);
}

void array_core::clear_overwrite() {
  array_->local().clear_overwrite();
}

std::map<std::string, std::string> array_core::attributes() const {
  check_open();
  return array_->local().file().attributes();
}

void array_core::set_attribute(std::string_view key, std::string_view value) {
  check_writable("have its attributes set");
  array_->local().file().set_attribute(key, value);
}

void array_core::remove_attribute(std::string_view key) {
  check_writable("have an attribute removed");
  array_->local().file().remove_attribute(key);
}

void array_core::unpin(const pinned_region& r) const noexcept {
  array_->local().unpin(r);
}

// --- with the ranks

int array_core::rank() const noexcept {
  return array_->rank();
}

std::pair<std::size_t, std::size_t> array_core::rows_of(int rank) const {
  return array_->rows_of(rank);
}

void array_core::sync(durability d) {
  array_->sync(d);
}

void array_core::sync_halo(std::size_t rows) {
  array_->sync_halo(rows);
}

void array_core::read_all(box_view b, std::byte* to, std::size_t elements) const {
  array_->transfer_all(access_kind::read, b, to, elements);
}

void array_core::write_all(box_view b, const std::byte* from, std::size_t elements) {
  array_->transfer_all(access_kind::write, b, const_cast<std::byte*>(from), elements);
}

void array_core::gather(const element_indices& from, std::byte* to, std::size_t elements) const {
  array_->gather(from, to, elements);
}

void array_core::scatter(const element_indices& to, const std::byte* from, std::size_t elements) {
  array_->scatter(to, from, elements);
}

void array_core::accumulate(const element_indices& to, const std::byte* from, std::size_t elements,
                            const element_operation& op) {
  array_->accumulate(to, from, elements, op);
}

pinned_region array_core::pin(box_view b, access_mode mode) const {
  return array_->pin(b, mode);
}

void array_core::resize(std::size_t first_extent) {
  array_->resize(first_extent);
}

void array_core::close() {
  array_->close();
}

// --- for algorithms

pager& array_core::pager() const noexcept {
  return array_->local().segment().served_by();
}

void array_core::set_in_progress(std::string_view what) {
  array_->set_in_progress(what);
}

process_group& array_core::group() const noexcept {
  return array_->group();
}

std::vector<std::size_t> array_core::file_tile() const {
  const auto tile = array_->local().file_tile();
  return {tile.begin(), tile.end()};
}

local_array& array_core::local() const noexcept {
  return array_->local();
}

bool array_core::written_by_others() const noexcept {
  return array_->written_by_others();
}

}  // namespace ooc::detail
