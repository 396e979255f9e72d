// What a plain file that several programs write should hold, and what it may hold instead.
//
// Each write has a number, from 1; 0 is the file's fill pattern.  What a byte is follows from the number of the write
// that it is from, and from where it is, so that a byte tells when and for where it was written.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "oocarray/file.hpp"

namespace ooc::attack {

using write_number = std::uint16_t;

/// A part of a file.
struct extent {
  std::uint64_t begin = 0, end = 0;

  auto operator<=>(const extent&) const = default;
};

std::byte byte_of(write_number n, std::uint64_t offset, std::span<const std::byte> fill) noexcept;

class shared_content {
 public:
  shared_content() = default;
  explicit shared_content(std::uint64_t size) : numbers_(size) {}

  std::uint64_t size() const noexcept { return numbers_.size(); }
  /// The sizes that it may have; more than one until somebody has asked.
  const std::set<std::uint64_t>& sizes() const noexcept { return sizes_; }

  void write(const std::vector<extent>& where, write_number n);
  void truncate(std::uint64_t size);
  /// Somebody has asked, and it was one of sizes().
  void has_size(std::uint64_t size);

  /// One of `all`, or byte by byte something of each: two calls ran at once, or one was cut short.
  static shared_content any_of(const std::vector<shared_content>& all);

  /// Whether the byte may be this; past the end the fill pattern.
  bool may_be(std::uint64_t offset, std::byte b, std::span<const std::byte> fill) const noexcept;
  write_number number(std::uint64_t offset) const noexcept {
    return offset < numbers_.size() ? numbers_[offset] : write_number{0};
  }

 private:
  struct other {
    extent where;
    write_number number;

    auto operator<=>(const other&) const = default;
  };
  void forget(extent e);

  std::vector<write_number> numbers_;
  std::vector<other> others_;  ///< what bytes may be from as well
  std::set<std::uint64_t> sizes_;
};

/// The chunks of 4 KiB that these parts of a file have bytes in.
class touched_chunks {
 public:
  touched_chunks(const ooc::striping& s, const std::vector<extent>& where);
  /// Where a file is cut off: the last chunk on each node.
  static touched_chunks of_cut(const ooc::striping& s, std::uint64_t size);
  void add(const touched_chunks& more) { chunks_.insert(more.chunks_.begin(), more.chunks_.end()); }
  bool meet(const touched_chunks& others) const;
  bool empty() const noexcept { return chunks_.empty(); }

 private:
  std::set<std::pair<std::uint64_t, std::uint64_t>> chunks_;  ///< stripe index, chunk there
};

}  // namespace ooc::attack
