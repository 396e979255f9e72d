// Options of an array that is created or opened.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oocarray/access.hpp"
#include "oocarray/process_group.hpp"
#include "oocarray/striping.hpp"

namespace ooc {

/// The order of elements in the file; a separate choice from their order in memory (the Layout).
enum class file_order : std::uint8_t {
  row_major,  ///< as C writes an array: other programs can read it
  tiled,      ///< tiles one after the other, each contiguous: tiles cost no seeks
};

/// Where the ranks' parts of a file lie: `.placement = ooc::placement::by_rank`.
enum class placement : std::uint8_t {
  striped,  ///< every part over all nodes
  by_rank,  ///< each rank's part on a node of the rank's own host
};

/// Whether sync() and sync_halo() look for accesses of two ranks that none of them orders:
/// `.checking = ooc::check_conflicts`.
enum class conflict_checking : std::uint8_t { off, on };
inline constexpr conflict_checking check_conflicts = conflict_checking::on;

/// Whether to refuse or to open a file that an algorithm of the library (ooc::sweep, ooc::transpose ...) has left in
/// the middle, because its process died: its elements are neither the old nor the new ones.
enum class unfinished_file : std::uint8_t { refuse, open };
inline constexpr unfinished_file open_unfinished = unfinished_file::open;

/// Every member may be left out: `{.fill = 1.0, .sparse = true}`.
///
/// Chosen at creation and recorded with the file: order, tile (for file_order::tiled), stripes (and
/// with them the placement), fill, sparse, max_extents, commits, attributes, permissions.  The others hold for this
/// object only.
template <class T>
struct array_options {
  file_order order = file_order::row_major;

  /// Shape of a tile, elements: of the file with file_order::tiled, and of memory with
  /// layout_tiled, which needs powers of two; without either it is refused.  Empty: as square as can
  /// be, of about one block; an existing tiled file is by default tiled alike in memory.
  std::vector<std::size_t> tile = {};

  /// Bytes in a block, the unit in which data move between memory and the store: a multiple of 4
  /// KiB.  0: that of the runtime (runtime_options::block), or less: no more than a small array
  /// has, and in an array of a group at most an eighth of a rank's part (but at least 64 KiB).
  /// With layout_tiled a block is a tile, and this is the size at which a default tile aims.
  std::uint64_t block = 0;

  /// The buffers of POCCS (Tang et al., section 3.1): at most `buffers` blocks of this array are in
  /// memory at once, and each has `elements_per_buffer` elements.  Both are rounded up (to 4 KiB,
  /// to a power of two in a tile, to at least 4 buffers); ooc_array::buffers() returns the result.
  /// 0 means no limit for `buffers`, and that `block` says how large a block is.
  std::uint64_t buffers = 0;
  std::uint64_t elements_per_buffer = 0;

  /// How the file is dealt out over I/O nodes; sf = 0: picked from shape and block.
  striping stripes = {};

  /// On create, by_rank: stripes are as large as a part (ooc_array::local_box()) and lie so that each
  /// rank's whole part is on a node of its own host, for one I/O server and one rank on each host of a
  /// cluster.  Needs `group` and no `stripes`.  Stripes go round robin, so the nodes beside ranks 0, 1,
  /// 2, ... must follow each other in the store, and begin again where there are more ranks than nodes;
  /// where they do not, or where parts would end within tiles of the file, that is a usage_error
  /// (errc::invalid_request) that says why, and nothing is made.  A resize() deals the parts out anew,
  /// not the stripes, and so does opening by another number of ranks.
  ooc::placement placement = ooc::placement::striped;

  /// The value of elements that were never written.  Default: all bytes zero.
  std::optional<T> fill = std::nullopt;

  /// Do not reserve the file's space at creation.  A full disk then shows when blocks are written.
  bool sparse = false;

  /// How far resize() may grow each extent: as many numbers as there are dimensions, or fewer; 0, or no number: not at
  /// all.  Other extents than the first have limits with file_order::tiled only.  Tiles are then numbered in the grid
  /// of these limits, and the file is sparse: a tile takes space when it is written, and what the array may grow to
  /// takes addresses, of which an array can have 64 TiB.
  std::vector<std::size_t> max_extents = {};

  /// Keep the last commit (ooc::commit) beside what is written since, which takes twice the space; with `sparse`, only
  /// that of what has changed, and commits and writes take longer.  See commit.hpp for what that means for others; not
  /// together with `shared`.
  bool commits = false;

  /// On create: attributes that the array has from its first moment on.  With `commits` a rollback to before the first
  /// commit leaves these, and takes away those that were set later.
  std::map<std::string, std::string> attributes = {};

  /// On create: room for a result that is not to stay.  The array has no name for others, though its path is taken, and
  /// goes with this object, or after the death of the process when the store is opened again.  Nothing is written back
  /// when it closes or the process ends; blocks for which memory has no room are written as those of any array.  Not
  /// together with `commits`, `shared`, `replace` or `group`.
  bool temporary = false;

  /// On create: remove what has this path.  Without it an existing path is an error (EEXIST).
  bool replace = false;

  /// Permission bits of a new file, as in POSIX; the umask is taken from them.
  std::uint32_t mode = 0644;

  /// Several processes write to different elements of this array at the same time.  Each then sends
  /// only the elements that it has changed, so none are lost, even within one block.  All these
  /// processes must set it; without it a second process that opens the array for writing is
  /// refused.  Price: a block that is written to takes twice its memory, because the library keeps
  /// a copy, and overwrite() saves nothing.
  bool shared = false;

  /// How long opening (or replacing) waits for another process that has the file open for writing,
  /// before it throws usage_error (errc::busy).  On a served store a process that died keeps its claim
  /// for the metadata server's grace period (30 s): it might come back.  The error tells how much of
  /// that is left.
  std::chrono::milliseconds wait_for_writer{0};

  /// The ranks that use this array together (mpi_group() of oocarray/mpi.hpp).  Creating, opening,
  /// sync(), sync_halo(), resize() and close() are then collective calls, and `shared` is implied.
  /// All ranks pass the same arguments; the default block is that of rank 0.
  std::shared_ptr<process_group> group = {};

  /// Every rank promises to write to its own part only (ooc_array::local_box()).  Blocks within the
  /// part are then written whole, without a copy, and overwrite() works on them.  A write to a
  /// block outside the part ends the process with a message.  A write to a neighbour's element, in
  /// a block that two parts share, makes the writeback(), sync() or sync_halo() fail that writes
  /// the block.
  bool owner_computes = false;

  /// check_conflicts: the ranks look for accesses that no sync() orders.  sync() then throws
  /// usage_error (errc::conflict) on all ranks, naming array, box and ranks, if since the last
  /// sync()
  ///   - two ranks changed the same element (a write of the value that it already had is not seen),
  ///   - a rank read through at() an element that another rank changed, or
  ///   - a rank read in another way a block in which another rank changed an element, even if it
  ///     read other elements of it.  A block that a rank wrote to before it read it is not seen as
  ///     read.
  /// sync_halo() throws in the same way.  It remembers writes outside its rows until sync(), and
  /// compares them with what other ranks do until then; each conflict is reported once.  close()
  /// reports what happened since the last sync().  No other call counts as ordering accesses: what
  /// a program orders by writeback(), a barrier of its own and invalidate(), or by sync() of another
  /// array, is reported too, so let it call sync() of this one.  Of two arrays in turns, both.  This option is for
  /// finding errors, not for speed: every modified block keeps a copy, and sync() and sync_halo() write back and drop
  /// all blocks.
  conflict_checking checking = conflict_checking::off;

  access_pattern pattern = access_pattern::automatic;

  /// open_unfinished: opens a file that is in the middle of an algorithm too.  Without it that is a
  /// usage_error (EBUSY) naming the algorithm.  The file stays marked until an algorithm has
  /// run over it to its end or ooc_array::set_finished() is called.
  unfinished_file unfinished = unfinished_file::refuse;
};

/// The same options for another type of elements, but for `fill`.
template <class U, class T>
array_options<U> without_fill(const array_options<T>& o) {
  return {.order = o.order,
          .tile = o.tile,
          .block = o.block,
          .buffers = o.buffers,
          .elements_per_buffer = o.elements_per_buffer,
          .stripes = o.stripes,
          .placement = o.placement,
          .fill = {},
          .sparse = o.sparse,
          .max_extents = o.max_extents,
          .commits = o.commits,
          .attributes = o.attributes,
          .temporary = o.temporary,
          .replace = o.replace,
          .mode = o.mode,
          .shared = o.shared,
          .wait_for_writer = o.wait_for_writer,
          .group = o.group,
          .owner_computes = o.owner_computes,
          .checking = o.checking,
          .pattern = o.pattern,
          .unfinished = o.unfinished};
}

/// The buffering that resulted from `buffers` and `elements_per_buffer`.
struct buffering {
  std::uint64_t buffers = 0;              ///< blocks in memory at once; 0: only the budget limits
  std::uint64_t elements_per_buffer = 0;  ///< whole elements that fit into a block
  std::uint64_t block_bytes = 0;          ///< bytes in a block
};

/// How an array comes to be: `ooc_array<double, 2> a{rt, store, "plate/a", ooc::create, {n, n}}`.
struct create_t {
  explicit create_t() = default;
};
struct create_or_open_t {
  explicit create_or_open_t() = default;
};
struct open_t {
  explicit open_t() = default;
};
struct open_read_only_t {
  explicit open_read_only_t() = default;
};
inline constexpr create_t create{};
inline constexpr create_or_open_t create_or_open{};
inline constexpr open_t open{};
inline constexpr open_read_only_t open_read_only{};

}  // namespace ooc
