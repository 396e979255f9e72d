#include "storage/layout/partition_view.hpp"

#include <algorithm>
#include <limits>

#include "oocarray/error.hpp"

namespace ooc::storage {

request view_request(const partition& p, std::uint64_t position, std::uint64_t length, access_kind kind) {
  constexpr std::uint64_t max = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t group = position / p.gsize, within = position % p.gsize;
  // offset + group * stride + within, refused where it passes max
  if (p.offset > max || within > max - p.offset || (group != 0 && p.stride > (max - p.offset - within) / group))
    throw usage_error(errc::invalid_request,
                      "view: byte " + std::to_string(position) + " lies past 2^63 - 1 in the file");
  const std::uint64_t first = p.offset + group * p.stride + within;
  if (p.stride == p.gsize || length <= p.gsize - within) return request::contiguous(first, length);

  strided_request r;
  r.rl = first;
  r.fs = within == 0 ? 0 : p.gsize - within;
  r.gs = p.gsize;
  r.gc = (length - r.fs) / p.gsize;
  r.sd = p.stride;
  r.ls = (length - r.fs) % p.gsize;
  return request::strided(r, kind);
}

std::uint64_t view_size(const partition& p, std::uint64_t file_size) noexcept {
  if (file_size <= p.offset) return 0;
  const std::uint64_t bytes = file_size - p.offset;
  return bytes / p.stride * p.gsize + std::min(bytes % p.stride, p.gsize);
}

}  // namespace ooc::storage
