// Strided requests: which bytes of a file go where in memory.
//
// The papers' six-parameter request (Cettei, Ligon, Ross 1998, section 2) and its generalisation to
// nested strides, the form in which every block of an N-d array travels: however many regions it
// has, it is one description and one message per I/O node.
//
// All offsets, lengths and steps are bytes.  A request is a value; threads may share it read-only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ooc {

/// (rl, fs, gs, gc, sd, ls) as in PVFS 1:
///
///     o = rl
///     if fs:     [o, o+fs)   then  o += fs + (sd - gs)
///     gc times:  [o, o+gs)   then  o += sd
///     if ls:     [o, o+ls)
///
/// `fs` is the *tail* of a group, `ls` the *head* of one; regions are in file order and packed in
/// the buffer.  Contiguous: (rl, size, 0, 0, 0, 0).
struct strided_request {
  std::uint64_t rl = 0;  ///< file offset of the first byte
  std::uint64_t fs = 0;  ///< bytes of the partial first group, or 0
  std::uint64_t gs = 0;  ///< bytes in a group
  std::uint64_t gc = 0;  ///< number of whole groups
  std::uint64_t sd = 0;  ///< bytes from the start of a group to the start of the next
  std::uint64_t ls = 0;  ///< bytes of the partial last group, or 0

  bool operator==(const strided_request&) const = default;
};

/// One level of a nested stride: `count` repetitions, `file_step` bytes apart in the file and
/// `memory_step` bytes apart in memory.
struct stride_level {
  std::uint64_t count = 1;
  std::uint64_t file_step = 0;
  std::uint64_t memory_step = 0;

  bool operator==(const stride_level&) const = default;
};

/// `run` contiguous bytes, repeated over up to `max_levels` levels, outermost first.
struct nested_request {
  static constexpr std::size_t max_levels = 8;

  std::uint64_t file_offset = 0;
  std::uint64_t memory_offset = 0;
  std::uint64_t run = 0;
  std::uint32_t depth = 0;  ///< levels in use
  std::array<stride_level, max_levels> levels{};

  /// Number of runs: the product of the counts.
  std::uint64_t runs() const noexcept;
  /// Number of bytes: runs() * run.
  std::uint64_t bytes() const noexcept;
};

enum class access_kind { read, write };

/// A list of nested requests: the one form the storage layer understands.
///
/// Pieces are visited in the order of the list and, within an entry, in the order of its levels;
/// both ends of a connection rely on that order.
class request {
 public:
  request() = default;

  /// The `length` bytes at `offset`, at memory offset 0.
  static request contiguous(std::uint64_t offset, std::uint64_t length);

  /// The papers' request; its regions are packed at memory offset 0.
  /// Throws usage_error (errc::invalid_request) for fs or ls > gs (unless contiguous), for
  /// sd < gs on writes, and where an offset passes 2^63 - 1.
  static request strided(const strided_request& r, access_kind kind = access_kind::read);

  /// Adds an entry; adjacent contiguous entries are joined.  Entries without bytes are dropped.
  /// Throws usage_error where an offset passes 2^63 - 1 or depth exceeds max_levels.
  void add(const nested_request& n);
  void add(std::uint64_t file_offset, std::uint64_t memory_offset, std::uint64_t length);

  std::span<const nested_request> entries() const noexcept { return entries_; }
  bool empty() const noexcept { return entries_.empty(); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// One past the last file byte touched; 0 for an empty request.
  std::uint64_t file_end() const noexcept { return file_end_; }
  /// One past the last memory byte touched.
  std::uint64_t memory_end() const noexcept { return memory_end_; }

  /// Calls f(file_offset, memory_offset, length) for every run, in order.
  template <class F>
  void for_each_run(F&& f) const {
    for (const nested_request& n : entries_) walk(n, 0, n.file_offset, n.memory_offset, f);
  }

 private:
  template <class F>
  static void walk(const nested_request& n, std::uint32_t level, std::uint64_t file, std::uint64_t memory, F& f) {
    if (level == n.depth) {
      f(file, memory, n.run);
      return;
    }
    const stride_level& s = n.levels[level];
    for (std::uint64_t i = 0; i < s.count; ++i)
      walk(n, level + 1, file + i * s.file_step, memory + i * s.memory_step, f);
  }

  std::vector<nested_request> entries_;
  std::uint64_t bytes_ = 0;
  std::uint64_t file_end_ = 0;
  std::uint64_t memory_end_ = 0;
};

}  // namespace ooc
