// The file behind an array: its entry, the claim to write it, and what is done to it as a whole.
//
// Owner: a local_array.  Invariants: the striped file is that of the entry; from create(),
// open() or join() on, the claim is held until release().  Where ranks share an array each has its own
// array_file, and rank 0's alone makes, resizes and fills the file; the others use() what they are
// told.
//
// Threads: whoever opens, resizes or closes the array, one at a time; facts and make_durable() any.
// Everything throws ooc::error with the path in what().
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oocarray/detail/array_core.hpp"
#include "runtime/array/array_plan.hpp"
#include "runtime/array/file_claims.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::detail {

/// How the process, or the group of processes, will write to the file.
writing writing_as(const array_request& r);

class array_file {
 public:
  /// `unfinished`: open() opens a file in the middle of an algorithm too.
  array_file(std::shared_ptr<storage::store_core> s, std::string_view path, bool writable, bool unfinished = false)
      : store_(std::move(s)), path_(path), writable_(writable), unfinished_(unfinished) {}

  const std::string& path() const noexcept { return path_; }
  const std::shared_ptr<storage::store_core>& store() const noexcept { return store_; }
  const storage::entry& entry() const noexcept { return opened_.meta; }
  const std::shared_ptr<const storage::striped_file>& striped() const noexcept { return opened_.file; }

  ~array_file() { release(); }
  array_file(const array_file&) = delete;
  array_file& operator=(const array_file&) = delete;

  /// Makes the file, and the folders above it, and claims it, unless it is temporary, so that nobody else can find it.
  void create(const array_request& r, const array_plan& plan);
  bool temporary() const noexcept { return temporary_; }
  /// Is called all the time while create() or open() waits for another program; see file_claim.
  void while_waiting(std::function<void()> f) { while_waiting_ = std::move(f); }
  /// Opens the file and claims it as `w` says; `check` looks at the entry first, and throws where it does not suit.
  void open(writing w, std::chrono::milliseconds patience, const std::function<void(const storage::entry&)>& check);
  /// Another rank's way to a capability of its own for the file that has been opened.
  storage::entry look_up_again() const { return store_->metadata().open(path_, writable_, unfinished_); }
  /// The file of an entry that another rank has opened or resized.
  void use(storage::opened_file f) { opened_ = std::move(f); }
  /// A file that another rank has opened, and claimed for all, as `claimant` (metadata_service::claimant): this one
  /// says in its process that it is open.
  void join(writing w, const std::string& claimant) {
    claim_ = file_claim(*store_, entry(), path_, holder, w, claimant);
  }
  /// Lets go of the file, and of a temporary one for good.
  void release() noexcept;

  /// The epochs of servers in which a rank has changed what is not durable yet (known_epoch.hpp).
  struct epochs {
    std::uint64_t metadata = 0;        ///< 0: it has not
    std::vector<std::uint64_t> nodes;  ///< by stripe index, likewise; empty: on no node
  };
  /// Of this rank.  Throws EIO where some of that is lost.
  epochs unsynced() const;
  /// Makes durable all data that nodes have acknowledged, whichever process wrote them.  Throws EIO where what another
  /// rank has told of its own is lost.
  void make_durable(std::span<const epochs> of_others = {}) const;
  /// The entry, after that.
  void make_entry_durable(std::span<const epochs> of_others = {}) const;
  /// Other ranks have done both after this one had told what is unsynced(), after the moment `before` (next_moment()).
  void made_durable_elsewhere(std::uint64_t before) const;
  /// See metadata_service::set_in_progress.
  void set_in_progress(std::string_view what) const {
    if (!temporary_) store_->metadata().set_in_progress(entry().id, what);
  }
  /// Wherever it has been renamed to.
  std::string current_path() const;
  // The attributes of the file, whatever its path is now.
  std::map<std::string, std::string> attributes() const;
  void set_attribute(std::string_view key, std::string_view value) const;
  void remove_attribute(std::string_view key) const;
  /// The file as it is once it has been given the size and extents of `now`; use() makes it this
  /// one.
  storage::opened_file resized(const array_geometry& now) const;
  /// Before the file of `was` becomes that of `now`: writes the fill value to what becomes elements and may have been
  /// written before.
  void fill_uncovered(const array_geometry& was, const array_geometry& now) const;

 private:
  /// Waits as long as `patience` for whoever has it open for writing.
  void claim(const storage::entry& e, writing w, std::chrono::milliseconds patience) {
    claim_ = file_claim(*store_, e.id, path_, holder, w, patience, while_waiting_);
  }
  static constexpr const char* holder = "an ooc_array";

  std::shared_ptr<storage::store_core> store_;
  std::string path_;
  bool writable_;
  bool unfinished_;
  bool temporary_ = false;  ///< made, and without a name
  storage::opened_file opened_;
  file_claim claim_;
  std::function<void()> while_waiting_;
};

}  // namespace ooc::detail
