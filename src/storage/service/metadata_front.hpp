// The calls of the metadata service under their names, as its users make them.
//
// An implementation answers any call; see metadata_service.hpp for what all of them promise.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/service/metadata_call.hpp"

namespace ooc::storage {

class metadata_front {
 public:
  virtual ~metadata_front() = default;

  /// The one function of an implementation.
  virtual metadata_answer answer(const metadata_call& call) = 0;

  /// Any call; the functions below ask one each.
  template <class Call>
  answer_of<Call> ask(Call call) {
    return std::get<answer_of<Call>>(answer(std::move(call)));
  }

  /// The entry that is there, to look at: of a file with commits, as of the last one.  On served stores it carries no
  /// capability.  Its path is that of `where`,
  /// and where that is empty the one from the root.
  entry lookup(const place& where) { return ask(calls::lookup{where}); }
  /// A file for use: its entry carries a capability for reading, and for writing if that is asked for.
  /// Throws EISDIR for a folder, EACCES where the caller may not, and EBUSY for a file that is marked by
  /// set_in_progress(), unless `unfinished`.  Who does not write a file with commits gets it as of the last one.
  entry open(const place& where, bool write, bool unfinished = false) {
    return ask(calls::open{where, write, unfinished});
  }
  /// The entry of a committed file, wherever it is now in the name space (attributes included), for
  /// use as after open().  `at_commit`: of a file with commits, as of the last one.
  entry find(file_id id, bool at_commit = false) { return ask(calls::find{id, right_read | right_write, at_commit}); }
  /// The entries of a folder by name, or the one entry of anything else; without capabilities.
  std::vector<entry> list(const place& where) {
    folder_part part = list_part(where, "", true);
    while (part.more && !part.entries.empty()) {
      const std::string& last = part.entries.back().path;
      folder_part next = list_part(where, last.substr(last.rfind('/') + 1), true);
      part.more = next.more && !next.entries.empty();
      std::move(next.entries.begin(), next.entries.end(), std::back_inserter(part.entries));
    }
    return std::move(part.entries);
  }
  /// Some of those whose names are greater than `after`; `whole`: all, where the service can.
  folder_part list_part(const place& where, std::string_view after, bool whole = false) {
    return ask(calls::list{where, std::string(after), whole});
  }
  /// Ids of every committed file: what `ooc verify` walks and what stripe objects are compared with.
  std::vector<file_id> files() { return ids(file_state::committed); }
  /// Ids of the files being made by a process that may be alive.  Ids are never used again, and an
  /// entry is there before its stripe objects: a stripe object listed *before* these calls whose id is in none of
  /// unfinished(), files() and dead() is an orphan.
  std::vector<file_id> unfinished() { return ids(file_state::unfinished); }
  /// Ids of the files that were removed, abandoned, or not committed by a maker that has died, and
  /// not yet forgotten: their stripe objects may be removed at any time by anybody.
  std::vector<file_id> dead() { return ids(file_state::dead); }

  /// Makes a file (its parent folders must exist) in state "being made": invisible to lookup and
  /// list until commit().  What was not committed when its maker died is swept at a later open.
  entry create(const place& where, const new_file& f) { return ask(calls::create{where, f}); }
  void commit(file_id id) { ask(calls::commit{id}); }
  /// Gives up a file that was not committed: it counts as removed, its stripe objects are to be removed.
  void abandon(file_id id) { ask(calls::abandon{id}); }
  void mkdir(const place& where, std::uint32_t mode, bool parents) { ask(calls::make_folder{where, mode, parents}); }
  /// The umask is not applied.
  entry make(const place& where, const new_entry& what) { return ask(calls::make{where, what}); }
  /// A further name of anything but a folder (EPERM).
  entry link(file_id id, const place& where) { return ask(calls::link{id, where}); }
  /// Moves a name; what has the new one is replaced in the same step, if that is asked for (else EEXIST), and
  /// returned as by unlink(); id 0: nothing was there.
  entry move(const place& from, const place& to, bool replace) { return ask(calls::move{from, to, replace}); }
  void rename(const place& from, const place& to) { (void)move(from, to, false); }
  /// Removes a file or an empty folder and returns what it was; of a file that was its last name (names is
  /// 0), the caller removes the stripe objects and then says forget().
  entry remove(const place& where) { return ask(calls::remove{where}); }
  /// Takes a name away, of an empty folder or of anything else (EISDIR, ENOTDIR), and returns what had it.  A
  /// file without another name (names is 0) stays in use by the caller, until it says abandon() or dies.
  entry unlink(const place& where, bool folder) { return ask(calls::unlink{where, folder}); }
  /// The stripe objects of a removed or abandoned file are gone from every node.
  void forget(file_id id) { ask(calls::forget{id}); }

  /// The capability that the nodes want to see before they remove stripe objects of a file that is gone: `id` must
  /// not be that of a file that is there or being made (EBUSY).  Empty on local stores.
  capability_ptr removal_capability(file_id id) { return ask(calls::capability{id, right_remove}); }
  /// The capability that the nodes want to see before they change the stripe objects to those of a file of `size`
  /// bytes; the caller holds lock_size().  Empty on local stores.  Throws EACCES where the caller may not write the
  /// file.
  capability_ptr size_capability(file_id id, std::uint64_t size) {
    return ask(calls::capability{id, right_resize, size});
  }
  /// Size and extents of a file whose stripe objects have them, and the generation that the stripe objects have been
  /// given with it.  False, and nothing is changed, where the generation is past that by now.  `reserved`: what
  /// the stripe objects have, where that is more than the size.  Counts it as a cut where the stripe objects of a file
  /// that is no array become shorter.
  bool set_size(file_id id, std::uint64_t size, const std::vector<std::uint64_t>& extents, std::uint64_t generation,
                std::uint64_t reserved = 0) {
    return ask(calls::set_size{id, size, extents, generation, reserved});
  }
  /// The stripe objects that the file had with `allocated` bytes have this generation: it was opened for writing.  Less
  /// than it has is no change.  False, and nothing is changed, where it has got further stripe objects since.  Durable
  /// on return.
  bool set_generation(file_id id, std::uint64_t generation, std::uint64_t allocated) {
    return ask(calls::set_generation{id, generation, allocated});
  }
  /// Marks a file whose contents are neither old nor new: `what` says who is doing what with it.  Empty:
  /// they are whole again.  Durable on return.
  void set_in_progress(file_id id, std::string_view what) { ask(calls::set_in_progress{id, std::string(what)}); }
  /// Returns the entry as it is then.  Mode and owner of the entry only, see store_core for the stripe objects.  Who is
  /// not uid 0 may give nothing away, and sets the group of what is his own to one of his own (EPERM).
  entry change(const place& where, const entry_change& what) { return ask(calls::change{where, what}); }
  /// Where an entry is named by its id, the keys `ooc.striping` and `ooc.type` stand for its own; of a file that has no
  /// bytes yet (EPERM).  The caller then holds lock_size(), and has seen to it that the store has the nodes.
  void set_attribute(const place& where, std::string_view key, std::string_view value) {
    ask(calls::set_attribute{where, std::string(key), std::string(value)});
  }
  /// Where there is none it is ENOENT, or ENODATA for an entry that is named by its id.
  void remove_attribute(const place& where, std::string_view key) {
    ask(calls::remove_attribute{where, std::string(key)});
  }

 private:
  std::vector<file_id> ids(file_state state) {
    std::vector<file_id> all;
    for (bool more = true; more;) {
      id_part part = ask(calls::ids{state, all.empty() ? 0 : all.back()});
      all.insert(all.end(), part.ids.begin(), part.ids.end());
      more = part.more && !part.ids.empty();
    }
    return all;
  }
};

/// As lookup(), or nothing where there is none (ENOENT).
inline std::optional<entry> lookup_if_there(metadata_front& metadata, const place& where) {
  try {
    return metadata.lookup(where);
  } catch (const error& e) {
    if (e.code() != std::errc::no_such_file_or_directory) throw;
    return std::nullopt;
  }
}

/// Whether somebody has removed the file; what is still used has no name then.  ENOENT alone may be told of its stripe
/// objects, too.
inline bool is_removed(metadata_front& metadata, file_id id) {
  const auto now = lookup_if_there(metadata, id);
  return !now || now->names == 0;
}

}  // namespace ooc::storage
