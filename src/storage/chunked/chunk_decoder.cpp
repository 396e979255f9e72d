#include "storage/chunked/chunk_decoder.hpp"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <limits>

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

std::string check_fletcher32(std::span<const std::byte> bytes, std::size_t& payload) {
  if (bytes.size() < 4) return "is too short for its checksum";
  payload = bytes.size() - 4;
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + payload, 4);
  const std::uint32_t is = fletcher32(bytes.first(payload));
  // HDF5 before 1.6.3 wrote the bytes of both halves the other way round.
  const std::uint32_t other = (is & 0x00ff00ffU) << 8 | (is & 0xff00ff00U) >> 8;
  return stored == is || stored == other ? "" : "does not match its checksum (Fletcher32)";
}

/// Returns how many bytes there are; more than fit are an error.
std::string inflate(std::span<const std::byte> from, std::span<std::byte> to, std::size_t& bytes) {
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB;
  state.next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(from.data()));
  state.avail_in = static_cast<std::uint32_t>(from.size());
  state.next_out = reinterpret_cast<std::uint8_t*>(to.data());
  state.avail_out = static_cast<std::uint32_t>(to.size());
  const int e = isal_inflate(&state);
  bytes = to.size() - state.avail_out;
  if (e != ISAL_DECOMP_OK) return "cannot be unpacked (deflate)";
  if (state.block_state != ISAL_BLOCK_FINISH)
    return state.avail_out == 0 ? "unpacks to more than a chunk" : "ends before its last byte (deflate)";
  return "";
}

void unshuffle(std::span<const std::byte> from, std::span<std::byte> to, std::size_t element) {
  const std::size_t n = from.size() / element;
  for (std::size_t b = 0; b < element; ++b) {
    const std::byte* in = from.data() + b * n;
    std::byte* out = to.data() + b;
    for (std::size_t i = 0; i < n; ++i) out[i * element] = in[i];
  }
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(n * element), from.end(),
            to.begin() + static_cast<std::ptrdiff_t>(n * element));
}

}  // namespace

std::span<std::byte> chunk_decoder::stored(std::size_t bytes) {
  now_.resize(std::max(now_.size(), bytes));
  bytes_ = bytes;
  return std::span(now_).first(bytes);
}

std::string chunk_decoder::undo(chunk_filter f, std::span<std::byte> to) {
  const std::span<const std::byte> is = std::span(now_).first(bytes_);
  if (f == chunk_filter::fletcher32) return check_fletcher32(is, bytes_);
  // A checksum of what was not packed yet may follow.
  const std::size_t most = to.size() + 4;
  next_.resize(std::max(next_.size(), most));
  if (f == chunk_filter::deflate) {
    if (const std::string why = inflate(is, std::span(next_).first(most), bytes_); !why.empty()) return why;
  } else {
    if (bytes_ > most) return "is longer than a chunk";
    unshuffle(is, next_, element_size_);
  }
  now_.swap(next_);
  return "";
}

std::string chunk_decoder::decode(std::uint32_t filter_mask, std::span<std::byte> to) {
  for (std::size_t i = filters_.size(); i-- > 0;) {
    if (i < 32 && (filter_mask >> i & 1U) != 0) continue;
    if (std::string why = undo(filters_[i], to); !why.empty()) return why;
  }
  if (bytes_ != to.size())
    return "has " + std::to_string(bytes_) + " bytes, and should have " + std::to_string(to.size());
  std::copy_n(now_.begin(), to.size(), to.begin());
  return "";
}

}  // namespace ooc::storage
