#include "storage/chunked/chunk_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/chunked/chunk_filters.hpp"

namespace ooc::storage {
namespace {

std::vector<std::vector<std::uint32_t>> parameters_of(const file_chunks& c) {
  auto all = c.parameters;
  all.resize(c.filters.size());
  return all;
}

}  // namespace

std::vector<std::uint64_t> steps_as_stored(const file_chunks& c, std::uint32_t element_size) {
  std::vector<std::uint64_t> steps(c.stored_order.size());
  std::uint64_t step = element_size;
  for (std::size_t i = steps.size(); i-- > 0; step *= c.extents[c.stored_order[i]]) steps[c.stored_order[i]] = step;
  return steps;
}

chunk_decoder::chunk_decoder(const file_chunks& c, std::uint32_t element_size)
    : filters_(c.filters),
      parameters_(parameters_of(c)),
      element_size_(element_size),
      extents_(c.extents.begin(), c.extents.end()),
      steps_(steps_as_stored(c, element_size)) {}

std::span<std::byte> chunk_decoder::stored(std::size_t bytes) {
  stored_.resize(std::max(stored_.size(), bytes));
  bytes_ = bytes;
  return std::span(stored_).first(bytes);
}

// What is stored is needed no longer once it has been unpacked.  A checksum may follow what is unpacked.
std::span<std::byte> chunk_decoder::beside(std::span<const std::byte> now, std::size_t chunk) {
  std::vector<std::byte>& memory = now.data() == between_.data() ? stored_ : between_;
  const std::size_t bytes = most_between(filters_, chunk);
  memory.resize(std::max(memory.size(), bytes));
  return std::span(memory).first(bytes);
}

std::uint64_t chunk_decoder::memory(const file_chunks& c, std::uint64_t chunk, std::uint64_t stored) {
  const bool goes_to_its_end =
      c.stored_order.empty() && std::none_of(c.filters.begin() + !c.filters.empty(), c.filters.end(), copies);
  if (goes_to_its_end) return stored;
  const std::uint64_t between = most_between(c.filters, chunk);
  return std::max(between, stored) + between;
}

std::string chunk_decoder::decode(std::uint32_t filter_mask, std::span<std::byte> to) {
  std::vector<std::size_t> applied;
  for (std::size_t i = 0; i < filters_.size(); ++i)
    if (i >= 32 || (filter_mask >> i & 1U) == 0) applied.push_back(i);
  std::span<const std::byte> now = std::span(stored_).first(bytes_);
  for (; !applied.empty(); applied.pop_back()) {
    const chunk_filter filter = filters_[applied.back()];
    const bool last = applied.size() == 1 && steps_.empty();
    const std::span<std::byte> next = last ? to : copies(filter) ? beside(now, to.size()) : std::span<std::byte>{};
    if (std::string why = undo(filter, parameters_[applied.back()], now, next, element_size_); !why.empty()) return why;
  }
  if (now.size() != to.size())
    return "has " + std::to_string(now.size()) + " bytes, and should have " + std::to_string(to.size());
  if (!steps_.empty()) {
    std::byte* end = to.data();
    put_in_order(0, now.data(), end);
  } else if (now.data() != to.data()) {
    std::memcpy(to.data(), now.data(), to.size());
  }
  return "";
}

void chunk_decoder::put_in_order(std::size_t dimension, const std::byte* from, std::byte*& to) const {
  const bool last = dimension + 1 == extents_.size();
  for (std::uint64_t i = 0; i < extents_[dimension]; ++i, from += steps_[dimension]) {
    if (!last) {
      put_in_order(dimension + 1, from, to);
    } else {
      std::memcpy(to, from, element_size_);
      to += element_size_;
    }
  }
}

}  // namespace ooc::storage
