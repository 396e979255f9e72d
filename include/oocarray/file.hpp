// A file of a store as bytes: POSIX-like calls, strided and list requests, partitioned views.
//
//     auto store = ooc::store::open("local:/disk1,/disk2");
//     auto f = ooc::file::create(store, "runs/log", {.size = 1_MiB});
//     f.write_at(4096, bytes);
//     f.read(ooc::strided_request{.rl = 400, .fs = 300, .gs = 500, .gc = 2, .sd = 800, .ls = 400},
//            out);
//     f.sync();
//
// Offsets, lengths and sizes are bytes, 64 bits wide; the largest file has 2^63 - 1.  However many
// regions a call names, each I/O node that holds any of them gets one message (a long transfer one
// for each address of the node, which are then used at once).
//
// Errors are thrown (error.hpp): usage_error where the call cannot be meant and nothing was done,
// io_error or integrity_error where the store failed; what() names file, node and cause.  After a
// failed write the bytes it named are old or new, 4 KiB chunk by chunk, and never torn; those
// outside it are untouched.
//
// Durability: when a write returns, its bytes are *acknowledged*: every later read of any process
// sees them and they survive the death of this process and of the store's servers.  They are
// *durable*, surviving the loss of power, when a sync() called later has returned.  A failed sync()
// is final: what it covered may be lost and must be written again.
//
// Threads: read_at, write_at, the request forms, size, truncate and sync may be called from
// any threads at once.  Calls that use the position (read, write, seek, tell, set_view) may be too,
// but take turns, so the threads share one position in no particular order.  Writes of different
// threads or processes to the same bytes at once leave one or the other in each 4 KiB chunk.
//
// Growth: a write past the end makes the file as long as the write needs.  From the second time on its stripe objects
// get space for as much again (16 MiB to 4 GiB) where there is that much, so that who appends call by call waits for it
// seldom.  That space is not part of size(); it is given back when the file is closed, and if the process dies, when
// somebody opens the file for writing next (of a served store, once the server has given the lost client up).  Until
// it is closed, such a file is not removed or replaced by others (errc::busy).
//
// Cuts: a write that ends within the size that this program has seen last asks nobody for it.  Where another program
// has cut the file off (truncate) since then, the I/O nodes refuse it; it then makes the file longer again, as one past
// the end does, before it returns.  So a write that begins after a truncate() has returned is in the file.  One that
// goes on beside a truncate() is before or after it, piece by piece where it reaches several nodes.  The file is as
// long as the last write after the cut needs; what was there before reads as the fill value.  A read within the size
// seen last asks nobody either, and gets the fill value past the cut: ask size() first.
//
// Removing a file that is open otherwise takes its data away, within a second or two: later calls then throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/process_group.hpp"
#include "oocarray/request.hpp"
#include "oocarray/store.hpp"
#include "oocarray/striping.hpp"

namespace ooc {

enum class file_access { read_only, read_write };
enum class seek_from { begin, current, end };

struct file_options {
  std::uint64_t size = 0;         ///< bytes at creation; reserved unless sparse
  ooc::striping striping{};       ///< sf == 0: chosen from the size; nn == 0: all nodes
  bool sparse = false;            ///< do not reserve space, here and when the file grows
  std::vector<std::byte> fill{};  ///< repeated from offset 0 where nothing was written; empty: zeros
  std::uint32_t mode = 0644;      ///< permission bits as in POSIX; the umask is taken from them
};

/// The papers' partitioned view: of every `stride` bytes from `offset` on, the first `gsize`.
/// Logical byte p is file byte offset + p / gsize * stride + p mod gsize.
struct partition {
  std::uint64_t offset = 0;
  std::uint64_t gsize = 0;   ///< > 0
  std::uint64_t stride = 0;  ///< >= gsize

  bool operator==(const partition&) const = default;
};

/// An open file.  Movable, not copyable; a moved-from file is closed.
class file {
 public:
  /// Makes a file and opens it for reading and writing.  Its folder must exist.  Throws EEXIST,
  /// ENOENT, EACCES, and ENOSPC (nothing is left behind then).
  static file create(const store& s, std::string_view path, const file_options& options = {});
  /// Opens a file.  Throws ENOENT, EISDIR, EACCES.
  static file open(const store& s, std::string_view path, file_access access = file_access::read_only);

  file(file&&) noexcept;
  file& operator=(file&&) noexcept;
  /// Closes; never throws.  There is nothing to write back: every write was acknowledged.  Space that was reserved past
  /// the end is given back.
  ~file();

  /// Closes the file; later calls, close() included, throw errc::closed.
  void close();
  bool is_open() const noexcept { return impl_ != nullptr; }

  const std::string& path() const;
  ooc::striping striping() const;
  /// Bytes in the file now, including growth by others; asks the metadata service.
  std::uint64_t size() const;

  /// Reads at the position (through the view, if one is set) and moves it by what was read: less
  /// than asked for only where the file ends, 0 at the end.
  std::size_t read(std::span<std::byte> out);
  /// Writes at the position (through the view) and moves it; all or an exception.  Grows the file
  /// as write_at does.
  void write(std::span<const std::byte> in);
  /// Moves the position, in bytes of the view if one is set; may pass the end.  Returns the new
  /// one.
  std::uint64_t seek(std::int64_t offset, seek_from origin = seek_from::begin);
  std::uint64_t tell() const;

  /// Reads file bytes [offset, offset + out.size()), whatever the position and the view.  Returns
  /// how many there were.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// Writes file bytes.  Past the end the file grows first, to exactly the end of what is written;
  /// of several processes that grow it at once none cuts off what another has grown.  Between the
  /// growth and the write others may read the fill value there.  The file of an array does not grow
  /// this way (errc::invalid_request).
  void write_at(std::uint64_t offset, std::span<const std::byte> in);

  /// Strided, nested and list requests; `out` and `in` hold at least r.memory_end() bytes.  Reads
  /// past the end of the file throw errc::invalid_request; writes grow it.
  void read(const strided_request& r, std::span<std::byte> out) const;
  void write(const strided_request& r, std::span<const std::byte> in);
  void read(const nested_request& r, std::span<std::byte> out) const;
  void write(const nested_request& r, std::span<const std::byte> in);
  void read(const request& r, std::span<std::byte> out) const;
  void write(const request& r, std::span<const std::byte> in);

  // --- Collective calls: every rank of `group` has opened the file and makes the same call, each
  // with bytes of its own or none.  Where the regions of the ranks interleave, each rank transfers
  // long contiguous parts of the file and passes on what belongs to others, with up to 32 MiB of
  // memory.  An error on one rank is thrown on all.

  /// As read() and write() at this rank's position and through its view: the papers' partitioned
  /// view, in which rank r of n has offset r * gsize and stride n * gsize.
  std::size_t read_all(process_group& group, std::span<std::byte> out);
  void write_all(process_group& group, std::span<const std::byte> in);
  /// As read() and write() of a request.  Pieces that are read may overlap.  Pieces that are
  /// written may not: throws usage_error (errc::conflict) that names ranks and bytes, and nothing
  /// is written.
  void read_all(process_group& group, const request& r, std::span<std::byte> out) const;
  void write_all(process_group& group, const request& r, std::span<const std::byte> in);

  /// From now on read, write, seek and tell mean bytes of the view; the position becomes 0.
  void set_view(const partition& p);
  void clear_view();
  std::optional<partition> view() const;

  /// Cuts the file off at `size`, or grows it with the fill value.  Not for the file of an array.
  /// A crash in the middle leaves the old size; bytes past `size` may then read as the fill value.
  void truncate(std::uint64_t size);
  /// Makes every write acknowledged so far durable, whoever made it, and the file's entry with it.
  void sync();

 private:
  struct impl;
  explicit file(std::unique_ptr<impl> i);
  impl& open_impl() const;

  std::unique_ptr<impl> impl_;
};

}  // namespace ooc
