// The two sides of `ooc cp` and `ooc mv`: the names and bytes of a store, or of this machine's file system.
//
// Both are seen as entries of a store; of a plain file, those fields count that it has (path, kind,
// size, mode, target, sparse).  Failures throw ooc::error with the path, or usage_mistake.  One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/command.hpp"
#include "storage/service/metadata_service.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

class salvage;

/// The bytes of a file, from the first one on.
class byte_source {
 public:
  virtual ~byte_source() = default;
  /// Fills `out` with what comes next; returns less only at the end.
  virtual std::size_t next(std::span<std::byte> out) = 0;
  /// Not of a stream: leaves out what says nothing and need not be copied, and returns how many bytes that are.
  virtual std::uint64_t skip() { return 0; }
  /// After skip(): so many bytes follow before there may be something to skip again.
  virtual std::uint64_t together() const { return meta.size; }
  /// Of a source with an origin(): leaves out, too, what its last commit has from the earlier commit `since`.
  virtual void leave_out_before(std::uint64_t /*since*/) {}
  /// Of an array with commits in a store: which file of all stores it is; otherwise empty.
  virtual std::string origin() const { return {}; }
  /// The entry of the file; of a stream the size is not known.
  storage::entry meta;
  bool is_stream = false;
  /// Where it is set, next() of a file of a store fills what it cannot read, and is called for whole elements.
  salvage* rescue = nullptr;
};

/// A file that appears under its name, in the place of what had it, when it is complete.
class byte_target {
 public:
  /// Removes what was not published.
  virtual ~byte_target() = default;
  virtual void append(std::span<std::byte> bytes) = 0;
  /// In place of bytes that the source has skipped.
  virtual void skip(std::uint64_t bytes) = 0;
  /// The bytes are safe, and the file has its name.
  virtual void publish() = 0;
};

class file_tree {
 public:
  virtual ~file_tree() = default;

  /// Nothing where there is nothing.
  virtual std::optional<storage::entry> look(const std::string& path) = 0;
  /// The entries in a folder, by name.
  virtual std::vector<storage::entry> list(const std::string& folder) = 0;
  virtual std::unique_ptr<byte_source> open(const storage::entry& e) = 0;
  /// A file like that of `from`, which outlives it, with all that this tree keeps of it.
  virtual std::unique_ptr<byte_target> make(const std::string& path, const byte_source& from) = 0;
  /// The file that is at `path`, an earlier copy of the commits of `from`, to be given those of its bytes that `from`
  /// does not leave out from then on.  `since`: the commit that it is a copy of; 0: whichever.  Null where it is
  /// easier to copy everything; throws usage_error where it is no such copy.
  virtual std::unique_ptr<byte_target> update(const std::string& path, byte_source& from, std::uint64_t since) = 0;
  /// Owner rights come first, so that the folder can be filled; finish_folder() sets what it has.
  virtual void make_folder(const std::string& path, const storage::entry& like) = 0;
  virtual void finish_folder(const std::string& path, const storage::entry& like) = 0;
  virtual void make_link(const std::string& path, const std::string& target) = 0;
  /// Throws errc::busy where somebody writes the file as an array.
  virtual void check_unused(const storage::entry& e, const char* to_be) = 0;
  /// Within the tree; replaces a file, or an empty folder by a folder.
  virtual void move(const storage::entry& from, const std::string& to) = 0;
  /// A file, a link or an empty folder; throws usage_error where a file of a store has been opened for writing, or has
  /// made room for another, since `e` was looked up.
  virtual void remove(const storage::entry& e) = 0;
  /// Changes of names are durable.
  virtual void sync() = 0;
  /// The same for trees with the same names; empty for this machine's.
  virtual std::string identity() const = 0;
};

/// `line` has the options of add_striping_options() for what is made.
std::unique_ptr<file_tree> tree_of_store(const ooc::store& store, const command_line& line);
/// The file system here; "-" is standard input and output.
std::unique_ptr<file_tree> tree_of_host();
/// Arrays within plain files, to be read (array_to_read.hpp).
std::unique_ptr<file_tree> tree_of_arrays_in_place();

/// The bytes of a file of a store that goes by this identity.  `chunk`: elements of a row that lie together, where the
/// array lies in chunks of a file in place; 0: all do.
std::unique_ptr<byte_source> source_of(storage::opened_file f, const std::string& store_uuid, std::uint64_t chunk = 0);

}  // namespace ooc::tool
