#include "storage/collective/request_bytes.hpp"

namespace ooc::storage {

void pack(packer& p, const request& r) {
  p.number(r.entries().size());
  for (const nested_request& n : r.entries()) {
    p.number(n.file_offset).number(n.memory_offset).number(n.run).number(n.depth);
    for (std::uint32_t l = 0; l < n.depth; ++l)
      p.number(n.levels[l].count).number(n.levels[l].file_step).number(n.levels[l].memory_step);
  }
}

request unpack_request(unpacker& u) {
  request r;
  for (std::uint64_t left = u.number(); left > 0; --left) {
    nested_request n;
    n.file_offset = u.number();
    n.memory_offset = u.number();
    n.run = u.number();
    const std::uint64_t depth = u.number();
    if (depth > nested_request::max_levels)
      throw integrity_error(errc::corrupt, "a message between ranks holds no request");
    n.depth = static_cast<std::uint32_t>(depth);
    for (std::uint32_t l = 0; l < n.depth; ++l)
      n.levels[l] = {.count = u.number(), .file_step = u.number(), .memory_step = u.number()};
    r.add(n);
  }
  return r;
}

}  // namespace ooc::storage
