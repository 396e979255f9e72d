// One I/O node: its stripe object of every file of a store.
//
// Two implementations: `local_io_service` (a folder, in this process) and the client of a server
// whose session passes the same calls to a local one (wire/node_calls.hpp).  Everything above sees only this interface,
// and an implementation answers any call with one function, so a decorator that injects faults or counts requests fits
// in between.
//
// Operations are asynchronous: they return at once and call `done` exactly once, on a thread of the
// service, possibly before the call returns; only where memory for the operation itself is wanting do
// they throw std::bad_alloc, and `done` is then not called.  The memory given must stay valid and, for
// reads, untouched until then.  All functions may be called from any thread.  `done` must not block for
// long and must not throw.
//
// Reads deliver verified bytes (every 4 KiB chunk matches its CRC32C) or a failure; bytes of the
// memory are undefined after a failed read.  A write is *acknowledged* when done() is called without
// failure: it then survives the death of the process that executed it.  It is *durable*, surviving
// the loss of power, after a later sync() has succeeded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/request.hpp"
#include "oocarray/stats.hpp"
#include "storage/layout/byte_interval.hpp"
#include "storage/layout/file_shape.hpp"
#include "storage/layout/known_epoch.hpp"

namespace ooc::storage {

using request_ptr = std::shared_ptr<const request>;
using completion = std::function<void(const failure&)>;

/// The findings of `verify` in one stripe object.
struct verify_report {
  std::uint64_t chunks = 0;           ///< chunks that were written at some time
  std::uint64_t torn = 0;             ///< overwrites cut short by a crash, never acknowledged
  std::uint64_t lost = 0;             ///< chunks whose checksums are gone
  std::vector<std::string> problems;  ///< a line for each chunk whose bytes are wrong, at most 100
  std::uint64_t corrupt = 0;          ///< number of such chunks
};

/// The distance between a process and a node.
enum class locality : std::uint8_t {
  none,     ///< it is embedded in the process
  host,     ///< a server on the same host
  network,  ///< a server on another one
};

/// The disk under a node, in bytes.
struct node_space {
  std::uint64_t size = 0;
  std::uint64_t free = 0;  ///< for who is not root
};

/// Reads whole chunks of one stripe object in the calling thread, without a request.
///
/// It allocates nothing and takes no lock that it would have to wait for, so that fault handlers may call
/// it.  (It may be the last to use a stripe object that was removed meanwhile: its files are then closed.)
class immediate_reader {
 public:
  virtual ~immediate_reader() = default;
  /// Reads `bytes` at `node_offset` to memory that is aligned to 4096 bytes, and verifies them.  False, with
  /// nothing said about the memory, where that takes more than one read (a file that is not open, chunks
  /// that were never written, are being written, or do not match): io_service::read() does what it takes.
  virtual bool read(std::uint64_t node_offset, std::byte* memory, std::size_t bytes) const noexcept = 0;
};

/// Intervals of one answer; what lies behind as many is in the last of them.
inline constexpr std::size_t most_ranges = 1 << 19;

enum class io_kind : std::uint8_t {
  read,
  write,
  create,
  resize,
  remove,
  advance,
  permit,
  sync,
  prepare,
  roll_back,
  find_changes,
  trim,
  clone,
  verify,
  list,
  find_locality
};
inline constexpr std::size_t io_kinds = static_cast<std::size_t>(io_kind::find_locality) + 1;

/// "creation", for messages.
inline std::string name_of(io_kind k) {
  constexpr const char* names[io_kinds] = {"read",
                                           "write",
                                           "creation",
                                           "resizing",
                                           "removal",
                                           "opening for writing",
                                           "change of permissions",
                                           "sync",
                                           "commit",
                                           "rollback",
                                           "list of changes",
                                           "trimming",
                                           "sharing",
                                           "verification",
                                           "list",
                                           "ping"};
  return names[static_cast<std::size_t>(k)];
}

/// The bytes that come back are in the caller's memory; the rest is here.
struct node_answer {
  verify_report report;
  std::vector<file_id> ids;           ///< list
  std::vector<byte_interval> ranges;  ///< find_changes: of the stripe object
  locality distance = locality::none;
};

/// One call of a node as a value: a client sends what a server carries out.
///
/// All are one struct, because nearly all have the same fields, as they have one body on the wire; the front in
/// io_service gives each its own.
struct node_call {
  io_kind kind = io_kind::read;
  shape_ptr file{};  ///< none: list, find_locality
  std::uint32_t stripe_index = 0;
  request_ptr wanted{};                   ///< read, write
  std::byte* memory = nullptr;            ///< of those; of a write it is only read
  std::uint64_t old_size = 0;             ///< resize
  std::uint64_t since = 0;                ///< find_changes: a commit
  bool lost = false;                      ///< resize: see replace()
  shape_ptr into{};                       ///< clone
  bool copies = false;                    ///< clone: what cannot be shared
  std::shared_ptr<node_answer> answer{};  ///< of calls that ask: filled before they succeed
};

class io_service {
 public:
  virtual ~io_service() = default;

  /// The one function of an implementation, and below it the calls under their names.
  virtual void answer(node_call call, completion done) = 0;

  /// Null where the node's bytes do not come without a request.
  virtual std::shared_ptr<const immediate_reader> reader_of(shape_ptr, std::uint32_t /*stripe_index*/) {
    return nullptr;
  }

  /// Reads those regions of `r` that lie on this node (which has the stripes `stripe_index`, stripe_index + nn, ...
  /// of the file) to memory + memory_offset of each region.  Pieces past the end of the file are an error.
  void read(shape_ptr file, std::uint32_t stripe_index, request_ptr r, std::byte* memory, completion done) {
    answer({io_kind::read, std::move(file), stripe_index, std::move(r), memory}, std::move(done));
  }
  void write(shape_ptr file, std::uint32_t stripe_index, request_ptr r, const std::byte* memory, completion done) {
    answer({io_kind::write, std::move(file), stripe_index, std::move(r), const_cast<std::byte*>(memory)},
           std::move(done));
  }

  /// Makes the stripe object, reserving its space unless the file is sparse.  ENOSPC leaves nothing behind.
  /// A file has stripe objects only on the nodes that hold at least one of its bytes.
  void create(shape_ptr file, std::uint32_t stripe_index, completion done) {
    answer({io_kind::create, std::move(file), stripe_index}, std::move(done));
  }
  /// Grows (reserving unless sparse) or shrinks the stripe object from what it had at `old_size` to what `file->size`
  /// gives it.  A stripe object that held nothing is made where there is none.  errc::conflict, and nothing is
  /// changed, where it would become shorter, or get another number of cuts, and is of a later generation than
  /// `file->generation`.
  void resize(shape_ptr file, std::uint32_t stripe_index, std::uint64_t old_size, completion done) {
    answer({io_kind::resize, std::move(file), stripe_index, {}, nullptr, old_size}, std::move(done));
  }
  /// In the place of a stripe object that was lost with its node makes another, durably, of which no byte can be read
  /// until its chunk is written whole.  One that is there stays as it is.  Not of files with commits.
  void replace(shape_ptr file, std::uint32_t stripe_index, completion done) {
    const std::uint64_t size = file->size;
    answer({.kind = io_kind::resize,
            .file = std::move(file),
            .stripe_index = stripe_index,
            .old_size = size,
            .lost = true},
           std::move(done));
  }
  /// Removes the stripe object of the file with this id; only id, name and capability of `file` count.  Without a
  /// striping (nn is 0) nobody knows the file but by list(), and the node looks for all that there is of it.
  void remove(shape_ptr file, completion done) { answer({io_kind::remove, std::move(file)}, std::move(done)); }
  /// The stripe object's generation becomes `file->generation`, durably; it must be that or the one before.
  /// errc::corrupt where it is less (an old copy of the stripe object was put back), errc::conflict where it
  /// is more: the file was opened for writing by another meanwhile, or the metadata are an old copy.
  void advance(shape_ptr file, std::uint32_t stripe_index, completion done) {
    answer({io_kind::advance, std::move(file), stripe_index}, std::move(done));
  }
  /// True where stripe objects have the permissions of their file (file_shape::permissions), because users of a
  /// store reach them without a server.
  virtual bool keeps_permissions() const { return false; }
  /// Gives the stripe object owner, group and mode of `file->permissions`; only where keeps_permissions().
  void permit(shape_ptr file, std::uint32_t stripe_index, completion done) {
    answer({io_kind::permit, std::move(file), stripe_index}, std::move(done));
  }
  /// All acknowledged writes of the stripe object become durable.  A failed sync is final for those data.
  void sync(shape_ptr file, std::uint32_t stripe_index, completion done) {
    answer({io_kind::sync, std::move(file), stripe_index}, std::move(done));
  }
  /// Acknowledged writes are where other programs look for them.  It is nothing to nodes whose bytes lie as they are
  /// written; one that packs them does it now.
  virtual void flush(completion done) { done({}); }
  /// What the node has read and keeps is read again: another program, or another rank of this one, may have changed
  /// it.  Nobody but a node that keeps what others may write does anything.
  virtual void forget() {}
  /// Of a node whose acknowledged writes a loss of power may take while this process lives: its epoch, and what of
  /// the file hangs on it.
  virtual known_epoch epoch_of(const file_shape& /*file*/) const { return {}; }
  /// Another process has synced the file in the same epoch, after it was told of all that had been acknowledged here
  /// `before` (next_moment()).
  virtual void synced_elsewhere(const file_shape& /*file*/, std::uint64_t /*before*/) {}
  /// Of a file with commits (file_shape::commits): what was written after commit `file->commit` becomes durable, so
  /// that it is the next one as soon as the metadata say so, and else is forgotten.  No write may be under way.  It
  /// may be repeated.
  void prepare(shape_ptr file, std::uint32_t stripe_index, completion done) {
    answer({io_kind::prepare, std::move(file), stripe_index}, std::move(done));
  }
  /// Of a file with commits: what was written after commit `file->commit` is forgotten.
  void roll_back(shape_ptr file, std::uint32_t stripe_index, completion done) {
    answer({io_kind::roll_back, std::move(file), stripe_index}, std::move(done));
  }
  /// Of a file with commits: the bytes, ascending, that in commit `file->commit` may not be those of the earlier commit
  /// `since`.  errc::conflict where the former is no longer kept.
  void find_changes(shape_ptr file, std::uint32_t stripe_index, std::uint64_t since,
                    std::function<void(const failure&, std::vector<byte_interval>)> done) {
    ask({.kind = io_kind::find_changes, .file = std::move(file), .stripe_index = stripe_index, .since = since},
        &node_answer::ranges, std::move(done));
  }
  /// Of a file with commits that is sparse, and of which commit `file->commit` has just been made: the space goes back
  /// that the commit before it had and this one has not.  Nobody can read that one any more.
  void trim(shape_ptr file, std::uint32_t stripe_index, completion done) {
    answer({io_kind::trim, std::move(file), stripe_index}, std::move(done));
  }
  /// Of a file with commits, read as of one: the stripe object of `into`, which nobody has written and nobody else
  /// knows, gets the bytes of that commit and shares their space on the disk.  `into` is of the same size, striping and
  /// fill pattern, and has no commits.  Where the node's file system cannot share, they are copied if `copies`, and
  /// else EOPNOTSUPP; errc::conflict where the commit is no longer kept.
  void clone(shape_ptr file, std::uint32_t stripe_index, shape_ptr into, bool copies, completion done) {
    answer({.kind = io_kind::clone,
            .file = std::move(file),
            .stripe_index = stripe_index,
            .into = std::move(into),
            .copies = copies},
           std::move(done));
  }
  /// Reads the whole stripe object against its checksums.
  void verify(shape_ptr file, std::uint32_t stripe_index, std::function<void(const failure&, verify_report)> done) {
    ask({io_kind::verify, std::move(file), stripe_index}, &node_answer::report, std::move(done));
  }
  /// The ids of all stripe objects that the node holds, to find those without metadata.
  void list(std::function<void(const failure&, std::vector<file_id>)> done) {
    ask({io_kind::list}, &node_answer::ids, std::move(done));
  }

  /// Finds the distance between this process and the node.
  void find_locality(std::function<void(const failure&, locality)> done) {
    ask({io_kind::find_locality}, &node_answer::distance, std::move(done));
  }

  /// Where the node is, for messages: a folder, or host:port.
  virtual std::string name() const = 0;
  virtual io_stats stats() const = 0;
  /// Nothing of the client of a server, which is asked otherwise (`ooc df`).  Throws io_error.
  virtual std::optional<node_space> space() const { return std::nullopt; }
  /// Bytes of memory the service may hold for transfers; the pager takes them off its budget.
  virtual std::uint64_t staging_bytes() const = 0;

 private:
  template <class T>
  void ask(node_call call, T node_answer::*what, std::function<void(const failure&, T)> done) {
    const auto told = std::make_shared<node_answer>();
    call.answer = told;
    answer(std::move(call),
           [told, what, done = std::move(done)](const failure& f) { done(f, f ? T{} : std::move((*told).*what)); });
  }
};

}  // namespace ooc::storage
