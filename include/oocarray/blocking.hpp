// A file as a matrix of records in blocks and superblocks: the arithmetic of the block layer.
//
// Dimension order, said once for the whole block layer: as in the 1998 paper, dimension 1 varies
// fastest, and it is element 0 of every list here.  That is the reverse of C++ extents: the matrix
// `T a[rows][columns]` in blocks of r x c elements is ne = {c, r}, nb = {columns / c, rows / r}.
//
// Every dimension i has ne[i] * nb[i] records.  Superblocks are boxes of bf[i] blocks; where bf does
// not divide nb, those at the far edge are clipped.  All of this is plain arithmetic on a value;
// block_file.hpp does the reading and writing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "oocarray/request.hpp"

namespace ooc {

/// Coordinates of a block, dimension 1 first: `{bx, by}`.
class block_coordinates {
 public:
  static constexpr std::size_t max_dimensions = 8;

  block_coordinates() = default;
  /// Throws usage_error (errc::invalid_request) for more than max_dimensions numbers.
  block_coordinates(std::initializer_list<std::uint64_t> c)
      : block_coordinates(std::span<const std::uint64_t>{c.begin(), c.size()}) {}
  block_coordinates(std::span<const std::uint64_t> c);

  std::size_t size() const noexcept { return size_; }
  std::uint64_t operator[](std::size_t i) const noexcept { return at_[i]; }
  std::uint64_t& operator[](std::size_t i) noexcept { return at_[i]; }
  bool operator==(const block_coordinates&) const = default;
  /// "(2, 1)"
  std::string text() const;

 private:
  std::array<std::uint64_t, max_dimensions> at_{};
  std::size_t size_ = 0;
};

/// A box of records: where it begins and how far it extends, in records, dimension 1 first.
struct record_box {
  block_coordinates begin;
  block_coordinates extent;
};

/// The papers' parameters.  D is the length of the lists, 1 to 8.
struct blocking {
  std::uint64_t rs = 1;           ///< bytes in a record
  std::vector<std::uint64_t> ne;  ///< records in a block
  std::vector<std::uint64_t> nb;  ///< blocks
  std::vector<std::uint64_t> bf;  ///< blocks in a superblock; empty: 1 in every dimension

  bool operator==(const blocking&) const = default;

  /// Throws usage_error (errc::invalid_request) for lists of unequal length, D outside 1 to 8, a
  /// zero, and a file of 2^63 bytes or more.  The functions below take a checked value for granted.
  void check() const;

  std::size_t dimensions() const noexcept { return ne.size(); }
  /// Records in dimension i + 1 of the paper.
  std::uint64_t extent(std::size_t i) const noexcept { return ne[i] * nb[i]; }
  /// bf, not longer than nb.
  std::uint64_t factor(std::size_t i) const noexcept;

  std::uint64_t file_bytes() const noexcept;
  std::uint64_t block_bytes() const noexcept;
  /// Bytes of a superblock that is not clipped: what the paper holds in memory for one file.
  std::uint64_t superblock_bytes() const noexcept;

  /// Superblocks in dimension i + 1, and in all.
  std::uint64_t superblocks(std::size_t i) const noexcept;
  std::uint64_t superblocks() const noexcept;

  bool contains(const block_coordinates& block) const noexcept;
  /// The records of a block, and of the superblock that it lies in.
  record_box block_box(const block_coordinates& block) const noexcept;
  record_box superblock_box(std::uint64_t superblock) const noexcept;
  /// The number of the superblock of a block; dimension 1 counts fastest.
  std::uint64_t superblock_of(const block_coordinates& block) const noexcept;

  /// The bytes of a box in the file; in memory they are packed in file order, from offset 0.
  nested_request request_of(const record_box& box) const noexcept;
};

}  // namespace ooc
