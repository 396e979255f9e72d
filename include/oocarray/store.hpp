// A store: a name space of files striped over I/O nodes.
//
//     local:/disk1,/disk2       embedded; one folder per I/O node, no server
//     ooc://host:7420           served: a metadata server there, I/O servers wherever it says
//     ooc://host:7420/?deadline=10s     the same, with store_options::deadline
//     rados:pool/namespace      in a pool of RADOS (Ceph), which survives the loss of disks and hosts; docs/rados.md
//
// A store is a cheap handle; copies share one connection.  Any thread may use it.
//
//     store.mkdir("runs/7", {.parents = true});
//     for (const ooc::store_entry& e : store.list("runs")) std::cout << e.path << "\n";
//     store.set_attribute("runs/7", "dt", "0.01");
//
// Paths are '/'-separated and relative to the store's root, which is "".  Calls on names ask the
// metadata service, throw ooc::error that names the path (ENOENT, EEXIST, ENOTDIR, EISDIR,
// ENOTEMPTY, EACCES; EROFS in a store that is open for reading), and are whole or have not
// happened.  When one returns, everybody sees the change, and it survives the end of every process;
// a loss of power only after a later writeback(ooc::durable) or file::sync() in this store.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/commit.hpp"
#include "oocarray/stats.hpp"
#include "oocarray/units.hpp"

namespace ooc {

namespace storage {
class store_core;
}

struct store_options {
  bool create = true;               ///< make a store where the folders are missing or empty
  unsigned workers = 0;             ///< I/O threads per node; 0: chosen from the number of nodes
  std::uint64_t staging = 256_KiB;  ///< bytes of bounce buffer per I/O thread, multiple of 64 KiB
  bool direct_io = true;            ///< bypass the page cache where the file system can
  bool io_uring = true;             ///< use io_uring where the kernel allows it
  /// Served stores: how long a call may go without word from its server, reconnections included,
  /// before it fails.  A server says every second what it is busy with.  The time counts from when the
  /// server was last heard of or first missed; when it has passed the server counts as gone, and calls
  /// fail at once until it answers again.  After 2 s a line on standard error says what is waited for.
  /// 0: $OOC_DEADLINE ("10s"), else 30 s, in RADOS 90 s.  The URL's own (`ooc://host:7420/?deadline=10s`) comes before
  /// both.
  std::chrono::milliseconds deadline{0};
  /// Served stores: file with the cluster key; empty: $OOC_KEY, else ~/.config/oocarray/key.
  std::string key{};
};

/// The file or folder at a path.
struct store_entry {
  std::string path;  ///< without slashes in front; "" is the root
  bool folder = false;
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  std::uint32_t mode = 0;       ///< permission bits as in POSIX
  std::int64_t created_ns = 0;  ///< since 1970, UTC
  std::int64_t changed_ns = 0;  ///< last change of the entry; data do not count
  std::uint64_t size = 0;       ///< bytes; files only

  // Of files that hold an array; extents are empty for others.
  std::string element_type;              ///< as in element_type.hpp
  std::uint32_t element_size = 0;        ///< bytes
  std::vector<std::size_t> extents;      ///< elements, slowest dimension first
  std::vector<std::size_t> tile;         ///< of the file, elements; empty: row-major
  std::vector<std::size_t> max_extents;  ///< limits of the extents; see array_options
  std::vector<std::byte> fill;           ///< one element; empty: zeros
  std::string codec;                     ///< how it is packed, as in "shuffle+zstd:3/524288"; empty: it is not
  std::uint64_t packed_size = 0;         ///< bytes that it takes then

  std::map<std::string, std::string> attributes;  ///< free, set by users
  std::optional<commit_info> last_commit;         ///< of an array with commits, which is shown as of that
};

struct mkdir_options {
  bool parents = false;       ///< make the folders above, too, and be content where it exists already
  std::uint32_t mode = 0755;  ///< permission bits; the umask is taken from them
};

struct snapshot_options {
  /// Where a node's file system shares no space between files (XFS and btrfs do), the bytes are copied, on the node.
  bool copy = false;
};

struct pack_options {
  /// zstd (levels 1 to 22; 3), lz4 (1) or gzip (1 to 9; 3), as in "zstd:9"; those that the library was built with.
  std::string codec = "zstd";
  /// First the first bytes of all elements of a chunk, then the second ones, ...: what makes numbers shorter, mostly.
  bool shuffle = true;
  /// Bytes that are packed together, and unpacked for any of them: 4 KiB to 64 MiB, less an incomplete element; 0: 512
  /// KiB, or up to 4 MiB of a file of more than 64 GiB.
  std::uint64_t chunk = 0;
  std::function<void(std::uint64_t bytes)> step{};  ///< called after each part, with its bytes
};

class store {
 public:
  /// Opens (or makes) the store at `url`.  Throws usage_error (errc::not_a_store) for a folder that
  /// holds something else, for folders of another store or in another order, and for a URL that
  /// cannot be read; io_error where a folder cannot be used.  A local store that the caller may not write, or
  /// that is on a read-only mount, is opened for reading: changes then throw EACCES or EROFS with the reason, and
  /// what others write meanwhile is seen.  Opening a served store asks its
  /// metadata server only, for which it waits up to the deadline.  A later call that needs the data of an I/O server
  /// that is not there waits for it, and fails after the deadline with an error that names it.
  static store open(std::string_view url, const store_options& options = {});

  std::string url() const;
  /// Identity of the store, made with it.
  std::string uuid() const;
  /// Number of I/O nodes.
  std::uint32_t nodes() const noexcept;
  /// The nodes on this host: all of a local store.  Throws io_error where one does not answer.
  std::vector<std::uint32_t> near_nodes() const;
  /// Sum over the nodes.
  io_stats stats() const;
  /// One per node, in order.
  std::vector<io_stats> node_stats() const;

  // --- Names

  /// The entries of a folder by name, or the one entry of a file.
  std::vector<store_entry> list(std::string_view folder = {}) const;
  bool exists(std::string_view path) const;
  /// The entry at `path`.  Throws ENOENT.
  store_entry entry(std::string_view path) const;
  /// Removes a file with its data, or an empty folder.  The name is gone at once; the data follow when that is durable,
  /// within a second or two (those of 64 MiB or more before this returns), so that a loss of power brings back a whole
  /// file or none.  Throws usage_error (errc::busy) for a file
  /// that somebody has open for writing as an array.  Who has it open for reading fails at the next
  /// block that is not in memory.
  void remove(std::string_view path) const;
  /// The same of a folder and everything below.  What was removed when an error is thrown stays
  /// removed.
  void remove_all(std::string_view path) const;
  /// Gives a file or folder another path, whose folder must exist; replaces nothing (EEXIST).  Open
  /// arrays and files stay open.
  void rename(std::string_view from, std::string_view to) const;
  void mkdir(std::string_view path, const mkdir_options& options = {}) const;

  /// Keeps what each of these arrays with commits has in its last one, all of them as at one moment, as an array
  /// `path@name` without commits that is there to be read.  It shares the space of what stays as it is, and programs
  /// go on writing and committing meanwhile.  Attributes tell what it is: `ooc.snapshot_of`, and `ooc.commit.KEY` for
  /// what was given with the commit.  Durable when it returns.  Where it throws before all are complete, none is left.
  /// Throws usage_error (errc::invalid_request) for what has no commit, (EEXIST) where there is one of that name,
  /// (errc::busy) where commits follow one another too fast; io_error (EOPNOTSUPP) without `copy`, where a node's file
  /// system shares no space, as objects in RADOS do not.
  std::vector<store_entry> snapshot(std::span<const std::string> paths, std::string_view name,
                                    const snapshot_options& options = {}) const;

  /// Packs the array at `path`, which is only read from then on, by every program as before, and unpacked as it is
  /// touched.  Other stripe objects take the place of those that it has when they are whole: a process that dies
  /// before leaves everything as it was, and who reads it meanwhile reads on.  Both need their space until then.
  /// It takes up to 100 MiB of memory, beside any budget.  Returns the bytes that it takes now.  Where packing makes it
  /// no shorter, or it is packed already, nothing changes. Throws usage_error (errc::invalid_request) for what is no
  /// array, has commits or no elements, and for a codec that is not there; (errc::busy) where somebody writes it;
  /// (EACCES) for who may not.  Durable when it returns.
  std::uint64_t pack(std::string_view path, const pack_options& options = {}) const;
  /// The reverse, under the same conditions.  Where it is not packed nothing changes.
  void unpack(std::string_view path, const std::function<void(std::uint64_t bytes)>& step = {}) const;

  /// Changes the mode of a file or folder: permission bits as in POSIX, no umask.  Whoever has it open already may go
  /// on. Throws EPERM for who is neither its owner nor user 0.
  void set_mode(std::string_view path, std::uint32_t mode) const;
  /// Changes owner and group, where they are given.  As in POSIX the owner may give it to a group of his own, and user
  /// 0 to everybody; throws EPERM else.
  void set_owner(std::string_view path, std::optional<std::uint32_t> owner,
                 std::optional<std::uint32_t> group = {}) const;

  /// Attributes of a file, a folder or the root: names of 1 to 255 bytes, values of up to 1 MiB, 4
  /// MiB in all.
  std::map<std::string, std::string> attributes(std::string_view path) const;
  void set_attribute(std::string_view path, std::string_view key, std::string_view value) const;
  /// Throws ENOENT where there is none.
  void remove_attribute(std::string_view path, std::string_view key) const;

  /// For the library's own layers and tools.
  const std::shared_ptr<storage::store_core>& core() const noexcept { return core_; }
  explicit store(std::shared_ptr<storage::store_core> core) : core_(std::move(core)) {}

 private:
  std::shared_ptr<storage::store_core> core_;
};

}  // namespace ooc
