#include "storage/chunked/chunk_encoder.hpp"

#include <algorithm>
#include <cstring>

#include "storage/chunked/chunk_decoder.hpp"
#include "storage/chunked/chunk_filters.hpp"

namespace ooc::storage {

chunk_encoder::chunk_encoder(const file_chunks& c, std::uint32_t element_size)
    : filters_(c.filters),
      packing_(c.packing),
      element_size_(element_size),
      extents_(c.extents.begin(), c.extents.end()),
      steps_(steps_as_stored(c, element_size)) {
  packing_.resize(filters_.size());
}

std::uint64_t chunk_encoder::memory(const file_chunks& c, std::uint64_t chunk) {
  const std::size_t made = c.filters.size() + (c.stored_order.empty() ? 0 : 1);
  return std::min<std::uint64_t>(made, 2) * most_packed(chunk);
}

std::span<std::byte> chunk_encoder::beside(std::span<const std::byte> now) {
  std::vector<std::byte>& memory = now.data() == first_.data() ? second_ : first_;
  memory.resize(std::max<std::size_t>(memory.size(), most_packed(now.size())));
  return memory;
}

std::string chunk_encoder::encode(std::span<const std::byte> chunk) {
  std::span<const std::byte> now = chunk;
  if (!steps_.empty()) {
    const std::span<std::byte> to = beside(now).first(chunk.size());
    const std::byte* from = chunk.data();
    put_as_stored(0, from, to.data());
    now = to;
  }
  for (std::size_t i = 0; i < filters_.size(); ++i)
    if (std::string why = apply(filters_[i], packing_[i], now, beside(now), element_size_); !why.empty()) return why;
  stored_ = now;
  return "";
}

void chunk_encoder::put_as_stored(std::size_t dimension, const std::byte*& from, std::byte* to) const {
  const bool last = dimension + 1 == extents_.size();
  for (std::uint64_t i = 0; i < extents_[dimension]; ++i, to += steps_[dimension]) {
    if (!last) {
      put_as_stored(dimension + 1, from, to);
    } else {
      std::memcpy(to, from, element_size_);
      from += element_size_;
    }
  }
}

}  // namespace ooc::storage
