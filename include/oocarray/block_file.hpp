// The block layer (MDBI: Cettei, Ligon, Ross 1998, section 3): blocks of a file by coordinates.
//
//     ooc::block_file a = ooc::block_file::open(rt, store, "matrix",
//         {.rs = 16, .ne = {n, n}, .nb = {64, 64}, .bf = {64, 1}});
//     a.read_block({bx, by}, std::as_writable_bytes(std::span{block}));
//
// Any touch of a block fetches the superblock around it by one access to the store, whatever its
// shape; the other blocks of the superblock are then served from memory.  Superblocks live in the
// pool of the runtime: they share its budget with every array, the least recently used ones leave,
// modified ones are written back before they do.
//
// It works on any row-major file of a store, with or without a recorded element type, also one that
// an ooc_array made.  A file that is open for writing is open once in a process (as an array or as blocks); a second
// open throws usage_error (errc::busy).  Those who only read it may be many, each with blocks of its own in memory.
// Dimension order and the meaning of rs, ne, nb and bf: blocking.hpp.
//
// Threads: all functions but close(), the move operations and the destructor may be called from any
// thread at any time.  Two threads that write one block leave a mixture of both.
//
// A block is *dirty* from write_block() or a pin for writing until its I/O nodes have acknowledged
// it: writeback(), close(), the destructor, or the pool when it needs room.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "oocarray/access.hpp"
#include "oocarray/blocking.hpp"
#include "oocarray/error.hpp"
#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"
#include "oocarray/striping.hpp"

namespace ooc {

namespace detail {
class block_core;
}

struct block_file_options {
  /// Superblocks of this file in memory, at most; 0: as many as the budget holds.  The paper's library
  /// holds one.  With two or more, and room for them, the one that the program comes to next is read while it is at
  /// work with this one, where it goes through them at equal steps.
  std::uint64_t max_superblocks = 0;
  /// Other processes write other records of the file at the same time: see array_options::shared.
  bool shared = false;
  /// How long opening waits for a process that writes the file: see array_options::wait_for_writer.
  std::chrono::milliseconds wait_for_writer{0};

  // At creation only:
  std::string element_type;  ///< recorded with the file ("f8", "c16" ...); empty: plain records
  ooc::striping striping;    ///< sf == 0: one that deals every superblock out evenly
  bool sparse = false;       ///< do not reserve the space
};

/// A block that stays in memory while the guard lives: zero-copy access to its records.
///
/// Owned by the caller.  It keeps the file's cache alive, but close() of the file throws
/// (errc::busy) while a guard exists.  Where the mode is access_mode::write, the whole superblock
/// counts as dirty from the pin to the first write-back after the guard is gone.
class block_guard {
 public:
  block_guard() = default;
  block_guard(block_guard&& o) noexcept;
  block_guard& operator=(block_guard&& o) noexcept;
  ~block_guard();

  /// The first record of the block; nullptr for an empty guard.
  std::byte* data() const noexcept { return data_; }
  /// The first record as a T; `sizeof(T)` must divide the record.
  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data_);
  }
  /// Records in dimension i + 1 of the paper.
  std::uint64_t extent(std::size_t i) const noexcept { return extent_[i]; }
  /// Bytes from a record to the next one in dimension i + 1; stride(0) is rs.
  std::uint64_t stride(std::size_t i) const noexcept { return stride_[i]; }

  /// Lets go of the block.
  void reset() noexcept;

 private:
  friend class detail::block_core;
  std::shared_ptr<detail::block_core> core_;
  std::byte* data_ = nullptr;
  std::uint64_t superblock_ = 0;
  access_mode mode_ = access_mode::read;
  block_coordinates extent_;
  block_coordinates stride_;
};

class block_file {
 public:
  /// Makes the file `path`, zero-filled, with exactly the bytes that `b` describes.  Throws io_error
  /// (EEXIST, ENOSPC ...), and usage_error for a malformed `b` or where the budget of the runtime
  /// cannot hold one superblock (errc::budget_too_small).  A failure leaves no file behind.
  static block_file create(runtime& rt, const store& s, std::string_view path, const blocking& b,
                           const block_file_options& options = {});
  /// Opens a file that has at least the bytes that `b` describes; otherwise, and for a file in
  /// tiled order, usage_error (errc::type_mismatch).
  static block_file open(runtime& rt, const store& s, std::string_view path, const blocking& b,
                         const block_file_options& options = {});
  /// The same for reading only; writes then throw usage_error (EROFS).
  static block_file open_read_only(runtime& rt, const store& s, std::string_view path, const blocking& b,
                                   const block_file_options& options = {});

  block_file(block_file&&) noexcept = default;
  block_file& operator=(block_file&&) noexcept = default;
  /// Writes back what is dirty, reports on stderr what could not be written, never throws.  Where
  /// guards exist, the last of them does this.
  ~block_file() = default;

  /// Copies a block to the caller's memory, packed in file order (dimension 1 fastest).
  /// `to` has block_bytes() bytes or more.
  void read_block(const block_coordinates& at, std::span<std::byte> to);
  /// Copies a packed block from the caller's memory into the cache; it is dirty then.  Where the
  /// superblock is this one block, nothing is read from the store.
  void write_block(const block_coordinates& at, std::span<const std::byte> from);
  /// Keeps the block in memory and hands out its address.
  block_guard pin(const block_coordinates& at, access_mode mode = access_mode::read);
  /// The same for writing, where the caller promises to write every byte of the block before
  /// letting go of it: nothing is read if the block is its whole superblock.
  block_guard overwrite(const block_coordinates& at);
  /// Starts fetching the superblock of a block, if there is room, and returns: for orders that are not equal steps.
  void prefetch(const block_coordinates& at);

  /// Returns when every dirty block has been acknowledged by its I/O nodes, or, with ooc::durable,
  /// when the file is on stable storage.  Throws the first failure; what failed stays dirty.
  void writeback(durability d = durability::acknowledged);
  /// Forgets the blocks in memory, so that the next touch reads the store.  Throws usage_error where
  /// a block is dirty (errc::dirty) or pinned (errc::busy), and then does nothing.
  void invalidate();
  /// The same, losing modified blocks.
  void invalidate(discard_t);
  /// Writes back and closes.  Throws as writeback() does, and errc::busy while a guard exists; the
  /// file is then still open.  Closing twice is nothing.
  void close();

  const std::string& path() const;
  const blocking& shape() const;
  ooc::striping striping() const;
  std::uint64_t block_bytes() const { return shape().block_bytes(); }
  std::uint64_t dirty_superblocks() const;

 private:
  explicit block_file(std::shared_ptr<detail::block_core> core);
  detail::block_core& core() const;

  std::shared_ptr<detail::block_core> core_;
};

}  // namespace ooc
