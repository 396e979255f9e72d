// The part of a node's operations that only files with commits (object/sides.hpp) need: where their chunks are, and
// the ends of the changes that were written since the last commit.
//
// A part of node_operations; operations are open (`target`), and hold the locks that each function names.
#pragma once

#include <span>

#include "storage/node/node_messages.hpp"
#include "storage/node/operation.hpp"
#include "storage/object/sides.hpp"

namespace ooc::storage {

class commit_operations : private node_messages {
 public:
  explicit commit_operations(std::filesystem::path folder) : node_messages(std::move(folder)) {}

  /// io_kind::prepare; the whole stripe object is locked.
  failure prepare(operation& op);
  /// io_kind::roll_back; the whole stripe object is locked.  A sparse file gives back the space of what is forgotten,
  /// and what trim() of the last commit has left that was cut short.
  failure roll_back(operation& op);
  /// io_kind::trim: what of these chunks counts neither now nor in the last commit.  They are locked.
  failure trim(operation& op, chunk_range chunks);
  /// io_kind::find_changes and trim, of this many bytes of the stripe object; nobody prepares a commit.
  failure find_changes(operation& op, std::uint64_t bytes);

  /// For a read of these chunks.  EBADMSG without their locks may mean that they are being written.
  int find(const operation& op, std::span<const chunk_range> chunks, chunk_places& places) const;
  /// For a write of these chunks, which are locked; `h` as from mark_unsynced().
  failure choose(operation& op, std::span<const chunk_range> chunks, const checksum_header& h, chunk_places& places);
  /// They have been written.
  failure settle(operation& op, const chunk_places& places);

  /// Of who would see, or change, what a loss of power has left of changes after the last commit.
  failure lost_with_power(const operation& op);
  /// Of a read of a commit that has been delivered: it may have been of a later one.
  failure no_longer_there(const operation& op);
  failure no_places(const operation& op, int error);

  /// The file has become shorter; the whole stripe object is locked.  What was cut off reads as the pattern when it
  /// grows again.  The stripe object keeps its length, for what the last commit has is there.
  failure forget_end(operation& op, io_worker& w, std::uint64_t before, std::uint64_t after);
  /// Reads chunks to check them: adds those that are damaged to op.bad, and those that were ever written to the
  /// report.  Of a file with commits, what the last one has is looked at as well.
  failure check(operation& op, io_worker& w, chunk_range chunks);

 private:
  /// So many places from this one on, which count nowhere, take no space any more.
  failure punch(operation& op, std::uint64_t place, std::uint64_t chunks);
  /// They are as if they had never been written, but for what the last commit has.
  failure clear(operation& op, chunk_range chunks, const checksum_header& h, const chunk_places& places);
};

}  // namespace ooc::storage
