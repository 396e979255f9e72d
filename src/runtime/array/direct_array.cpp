#include "runtime/array/direct_array.hpp"

#include "runtime/array/local_array.hpp"
#include "storage/base/log.hpp"
#include "storage/base/lost_data.hpp"

namespace ooc::detail {
namespace {

/// Where in the file elements in row-major order begin, one after the other; none: they lie in another order.
std::optional<std::uint64_t> begin_of_run(const array_geometry& g) {
  if (!g.file_tile().empty()) return std::nullopt;  // a request for each tile
  const request all = g.packed_request(g.whole());
  if (all.entries().size() != 1 || all.entries().front().depth != 0) return std::nullopt;
  return all.entries().front().file_offset;
}

}  // namespace

direct_array::direct_array(local_array& a, access_mode mode, const char* operation)
    : array_(a),
      writes_(mode == access_mode::write),
      state_((a.check_open(), a.source().current())),
      run_(begin_of_run(state_->geometry)) {
  if (writes_) array_.check_unpinned(operation);
  array_.writeback(durability::acknowledged);
  if (!writes_) return;
  array_.clear_overwrite();  // what is written past the blocks uses no promise up
  array_.invalidate(false);
}

direct_array::~direct_array() {
  if (!writes_) return;
  const segment::invalidated result = array_.segment().invalidate(false);
  if (result == segment::invalidated::done) return;
  const std::string who = "array '" + array_.facts().path + "': another thread ";
  if (result == segment::invalidated::pinned) {  // against the rules; nothing is dropped
    log_error(who + "pinned a block of it during an algorithm, and goes on with the elements from before");
    return;
  }
  log_error(who + "used it during an algorithm; what it wrote is lost");
  data_were_lost();
  array_.segment().invalidate(true);
}

request direct_array::elements(std::uint64_t first, std::uint64_t count) const {
  const array_geometry& g = state_->geometry;
  if (run_) return request::contiguous(*run_ + first * g.element_size(), count * g.element_size());
  return elements_request(g, first, count);
}

request direct_array::box(box_view b) const {
  index_box box;
  for (std::size_t k = 0; k < b.lower.size(); ++k) {
    box.lower[k] = b.lower[k];
    box.upper[k] = b.upper[k];
  }
  return state_->geometry.packed_request(box);
}

}  // namespace ooc::detail
