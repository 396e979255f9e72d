#include "storage/service/file_growth.hpp"

#include <algorithm>

namespace ooc::storage {

namespace {

constexpr std::uint64_t least_step = std::uint64_t{16} << 20;
constexpr std::uint64_t greatest_step = std::uint64_t{4} << 30;

/// f(bytes to reserve): first with more than `end`.
template <class F>
opened_file with_space_if_there_is(std::uint64_t end, F f) {
  try {
    return f(end + std::clamp(end, least_step, greatest_step));
  } catch (const error& e) {
    if (e.code() != std::errc::no_space_on_device) throw;
  }
  return f(end);
}

}  // namespace

opened_file grow_ahead(store_core& store, const opened_file& f, std::uint64_t size) {
  return with_space_if_there_is(size, [&](std::uint64_t reserved) { return store.grow(f, size, reserved); });
}

opened_file reserve_ahead(store_core& store, const opened_file& f, std::uint64_t end) {
  return with_space_if_there_is(end, [&](std::uint64_t reserved) { return store.reserve(f, end, reserved); });
}

std::shared_ptr<void> claim_to_write(store_core& store, file_id id, bool together, claim_holder* in_the_way) {
  metadata_service& metadata = store.metadata();
  if (auto claim = metadata.claim_writer(id, together)) return claim;
  // Who only gives back what others have reserved holds this lock meanwhile.
  const auto lock = metadata.lock_size(id);
  return metadata.claim_writer(id, together, in_the_way);
}

}  // namespace ooc::storage
