#include "storage/collective/entry_bytes.hpp"

#include "storage/base/packed.hpp"

namespace ooc::storage {

std::vector<std::byte> packed_entry(const entry& e) {
  packer p;
  p.number(e.id).number(static_cast<std::uint64_t>(e.kind)).text(e.path);
  p.number(e.owner).number(e.group).number(e.mode);
  p.number(static_cast<std::uint64_t>(e.created_ns))
      .number(static_cast<std::uint64_t>(e.changed_ns));
  p.number(e.size).number(e.striping.sn).number(e.striping.nn).number(e.striping.sf);
  p.number(e.sparse).number(e.generation).bytes(e.fill);
  p.text(e.array.element_type).number(e.array.element_size).numbers(e.array.extents);
  p.number(e.array.max_extent).numbers(e.array.tile);
  return p.take();
}

entry unpacked_entry(std::span<const std::byte> bytes) {
  unpacker u(bytes);
  entry e;
  const auto small = [&u] { return static_cast<std::uint32_t>(u.number()); };
  e.id = u.number();
  e.kind = static_cast<entry_kind>(u.number());
  e.path = u.text();
  e.owner = small();
  e.group = small();
  e.mode = small();
  e.created_ns = static_cast<std::int64_t>(u.number());
  e.changed_ns = static_cast<std::int64_t>(u.number());
  e.size = u.number();
  e.striping.sn = small();
  e.striping.nn = small();
  e.striping.sf = u.number();
  e.sparse = u.number() != 0;
  e.generation = u.number();
  const std::span<const std::byte> fill = u.bytes();
  e.fill.assign(fill.begin(), fill.end());
  e.array.element_type = u.text();
  e.array.element_size = small();
  e.array.extents = u.numbers();
  e.array.max_extent = u.number();
  e.array.tile = u.numbers();
  return e;
}

}  // namespace ooc::storage
