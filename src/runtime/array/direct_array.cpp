#include "runtime/array/direct_array.hpp"

#include "runtime/array/local_array.hpp"
#include "storage/base/log.hpp"
#include "storage/base/lost_data.hpp"

namespace ooc::detail {

direct_array::direct_array(local_array& a, access_mode mode, const char* operation)
    : array_(a), writes_(mode == access_mode::write), state_((a.check_open(), a.source().current())) {
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

bool direct_array::row_major() const {
  const request all = state_->geometry.packed_request(state_->geometry.whole());
  return all.entries().size() == 1 && all.entries().front().depth == 0;
}

request direct_array::elements(std::uint64_t first, std::uint64_t count) const {
  const array_geometry& g = state_->geometry;
  if (g.rank() == 1) {
    index_box b;
    b.lower[0] = first;
    b.upper[0] = first + count;
    return g.packed_request(b);
  }
  return request::contiguous(first * g.element_size(), count * g.element_size());
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
