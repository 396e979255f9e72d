#include "storage/chunked/chunk_decoder.hpp"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>

namespace ooc::storage {
namespace {

/// Of pairs of bytes, the first one the greater half; a last odd byte is followed by zero (H5checksum.c).
std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint32_t a = 0, b = 0;
  const auto fold = [](std::uint32_t n) { return (n & 0xffff) + (n >> 16); };
  const auto* p = reinterpret_cast<const std::uint8_t*>(bytes.data());
  for (std::size_t left = bytes.size(); left > 1;) {
    std::size_t pairs = std::min<std::size_t>(left / 2, 360);  // the most of which no sum overflows
    left -= 2 * pairs;
    for (; pairs > 0; --pairs, p += 2) b += a += static_cast<std::uint32_t>(p[0]) << 8 | p[1];
    a = fold(a);
    b = fold(b);
  }
  if (bytes.size() % 2 != 0) {
    b += a += static_cast<std::uint32_t>(*p) << 8;
    a = fold(a);
    b = fold(b);
  }
  return fold(b) << 16 | fold(a);
}

std::string check_fletcher32(std::span<const std::byte>& bytes) {
  if (bytes.size() < 4) return "is too short for its checksum";
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - 4, 4);
  bytes = bytes.first(bytes.size() - 4);
  const std::uint32_t is = fletcher32(bytes);
  // HDF5 before 1.6.3 wrote the bytes of both halves the other way round.
  const std::uint32_t other = (is & 0x00ff00ffU) << 8 | (is & 0xff00ff00U) >> 8;
  return stored == is || stored == other ? "" : "does not match its checksum (Fletcher32)";
}

std::string inflate(std::span<const std::byte>& bytes, std::span<std::byte> to) {
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB;
  state.next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(bytes.data()));
  state.avail_in = static_cast<std::uint32_t>(bytes.size());
  state.next_out = reinterpret_cast<std::uint8_t*>(to.data());
  state.avail_out = static_cast<std::uint32_t>(to.size());
  const int e = isal_inflate_stateless(&state);
  bytes = to.first(to.size() - state.avail_out);
  return e == ISAL_DECOMP_OK            ? ""
         : e == ISAL_OUT_OVERFLOW       ? "unpacks to more than a chunk (deflate)"
         : e == ISAL_INCORRECT_CHECKSUM ? "does not match its checksum (deflate)"
                                        : "cannot be unpacked (deflate)";
}

/// `Element`: its bytes, where they are known when this is compiled; 0: `element` has them.
template <std::size_t Element>
void unshuffle_elements(const std::byte* from, std::byte* to, std::size_t n, std::size_t element) {
  const std::size_t bytes = Element != 0 ? Element : element;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t b = 0; b < bytes; ++b) to[i * bytes + b] = from[b * n + i];
}

void unshuffle(std::span<const std::byte> from, std::span<std::byte> to, std::size_t element) {
  const std::size_t n = from.size() / element;
  const auto by = element == 2   ? unshuffle_elements<2>
                  : element == 4 ? unshuffle_elements<4>
                  : element == 8 ? unshuffle_elements<8>
                                 : unshuffle_elements<0>;
  by(from.data(), to.data(), n, element);
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(n * element), from.end(),
            to.begin() + static_cast<std::ptrdiff_t>(n * element));
}

}  // namespace

std::span<std::byte> chunk_decoder::stored(std::size_t bytes) {
  stored_.resize(std::max(stored_.size(), bytes));
  bytes_ = bytes;
  return std::span(stored_).first(bytes);
}

std::string chunk_decoder::undo(chunk_filter f, std::span<const std::byte>& now, std::span<std::byte> next) const {
  if (f == chunk_filter::fletcher32) return check_fletcher32(now);
  if (f == chunk_filter::deflate) return inflate(now, next);
  if (now.size() > next.size()) return "is longer than a chunk";
  unshuffle(now, next, element_size_);
  now = next.first(now.size());
  return "";
}

std::string chunk_decoder::decode(std::uint32_t filter_mask, std::span<std::byte> to) {
  std::vector<chunk_filter> applied;
  for (std::size_t i = 0; i < filters_.size(); ++i)
    if (i >= 32 || (filter_mask >> i & 1U) == 0) applied.push_back(filters_[i]);
  std::span<const std::byte> now = std::span(stored_).first(bytes_);
  for (; !applied.empty(); applied.pop_back()) {
    std::span<std::byte> next = to;
    if (applied.size() > 1) {
      // What is stored is needed no longer once it has been unpacked.  A checksum may follow what is unpacked.
      std::vector<std::byte>& memory = now.data() == between_.data() ? stored_ : between_;
      memory.resize(std::max(memory.size(), to.size() + 4));
      next = std::span(memory).first(to.size() + 4);
    }
    if (std::string why = undo(applied.back(), now, next); !why.empty()) return why;
  }
  if (now.size() != to.size())
    return "has " + std::to_string(now.size()) + " bytes, and should have " + std::to_string(to.size());
  if (now.data() != to.data()) std::memcpy(to.data(), now.data(), to.size());
  return "";
}

}  // namespace ooc::storage
