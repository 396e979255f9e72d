// Numbers as bytes, between processes of one program: the short headers and lists of numbers that
// ranks tell each other.  What wire messages have (entries, requests, failures) is told as these.
//
// Not as Protocol Buffers, because a collective call costs one round where what each rank says fits the 256 bytes that
// are all-gathered first (decision 9), and because src/runtime/geometry, which packs write logs, knows no messages.
//
// Not a file format: byte order and widths are the machine's.  A reader throws integrity_error past
// the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"

namespace ooc::storage {

class packer {
 public:
  packer& number(std::uint64_t n) {
    const auto* p = reinterpret_cast<const std::byte*>(&n);
    bytes_.insert(bytes_.end(), p, p + sizeof n);
    return *this;
  }
  packer& bytes(std::span<const std::byte> b) {
    number(b.size());
    bytes_.insert(bytes_.end(), b.begin(), b.end());
    return *this;
  }
  packer& numbers(std::span<const std::uint64_t> list) {
    number(list.size());
    for (const std::uint64_t n : list) number(n);
    return *this;
  }

  std::span<const std::byte> view() const noexcept { return bytes_; }
  std::vector<std::byte> take() noexcept { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class unpacker {
 public:
  explicit unpacker(std::span<const std::byte> b) : left_(b) {}

  std::uint64_t number() {
    std::uint64_t n = 0;
    std::memcpy(&n, next(sizeof n).data(), sizeof n);
    return n;
  }
  std::span<const std::byte> bytes() { return next(number()); }
  std::vector<std::uint64_t> numbers() {
    const std::uint64_t count = number();
    if (count > left_.size() / sizeof count) next(left_.size() + 1);
    std::vector<std::uint64_t> list(count);
    for (std::uint64_t& n : list) n = number();
    return list;
  }

 private:
  std::span<const std::byte> next(std::uint64_t n) {
    if (n > left_.size()) throw integrity_error(errc::corrupt, "a message between ranks ends too early");
    const std::span<const std::byte> b = left_.first(n);
    left_ = left_.subspan(n);
    return b;
  }

  std::span<const std::byte> left_;
};

}  // namespace ooc::storage
