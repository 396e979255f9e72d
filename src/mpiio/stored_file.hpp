// A file of a store that the ranks of an MPI program have open.
//
// Every rank has one of its own.  The first one opens (or makes) the file, the others look it up by its number, so
// that a file is opened once for a whole program.  Who opened it for writing holds a claim to write it together with
// others, until leave().
//
// A write that a node refuses because another program has cut the file off since its size was seen is made again by a
// thread of its own, after the file has been made longer.
//
// A write past the end first makes the file longer, visibly to everybody, and then writes: in between others may read
// zeros there, but not in atomic mode.  A rank that makes the file longer for the second time reserves more than it
// needs; what is reserved past the end is given back at close().  A write that has returned is acknowledged: everybody
// sees it; it is durable after a later sync().
//
// Any thread may call, but for close(), after which there must be no call.  Throws ooc::error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "mpiio/extents.hpp"
#include "oocarray/process_group.hpp"
#include "oocarray/store.hpp"
#include "oocarray/striping.hpp"
#include "storage/base/in_flight.hpp"
#include "storage/base/mutex.hpp"
#include "storage/service/growing_file.hpp"

namespace ooc::mpiio {

/// A transfer that has been started.  It holds its request; the memory is the caller's until it has ended.
class transfer {
 public:
  explicit transfer(std::uint64_t bytes) : bytes_(bytes) {}
  bool has_ended() const { return under_way_.is_below(1); }
  /// Returns when it has ended, the bytes that it transferred; throws, once, what it failed with.
  std::uint64_t wait() {
    throw_if(under_way_.wait());
    return bytes_;
  }

 private:
  friend class stored_file;

  const std::uint64_t bytes_;
  in_flight under_way_;
};

class stored_file {
 public:
  struct opening {
    std::string path;
    bool create = false;
    bool exclusive = false;  ///< EEXIST where it is there
    bool write = false;
    ooc::striping striping{};  ///< of a new file; as in file_options
  };

  static std::shared_ptr<stored_file> open(const store& s, const opening& o);
  /// The file that another process of this program has opened for the same use.
  static std::shared_ptr<stored_file> open_known(const store& s, storage::file_id id, bool write);

  /// Waits for transfers.
  ~stored_file();
  stored_file(const stored_file&) = delete;
  stored_file& operator=(const stored_file&) = delete;

  storage::file_id id() const { return id_; }

  /// Starts a transfer of all extents; of reads as far as the file goes.  `atomic`: as a whole before or after others
  /// of that kind; of a read only where the caller may write the file.
  std::shared_ptr<transfer> read(std::span<const ooc_mpiio_extent> extents, bool atomic);
  std::shared_ptr<transfer> write(std::span<const ooc_mpiio_extent> extents, bool atomic);

  /// The same by all ranks of a group, each with extents of its own or none, which may overlap; returns the bytes of
  /// this rank.  Throws the same on all ranks.
  std::uint64_t transfer_together(process_group& group, access_kind kind, std::span<const ooc_mpiio_extent> extents,
                                  bool atomic);

  std::uint64_t size();
  void resize(std::uint64_t size);
  /// The known size may be wrong.
  void forget_size();
  void sync();

  /// Waits for transfers, and gives up the claim: there are no writes any more.
  void leave();
  /// Gives back what is reserved past the end, if nobody writes the file any more.
  void give_back();

 private:
  using opened = storage::growing_file::snapshot;

  stored_file(const store& s, storage::opened_file f, bool write, std::shared_ptr<void> claim);
  void require_writable() const;
  storage::size_lock_ptr turn_to_read();
  std::shared_ptr<transfer> write_as_a_whole(std::span<const ooc_mpiio_extent> extents, std::uint64_t end);
  std::shared_ptr<transfer> start(const opened& f, placed_request r, access_kind kind, bool again = false);
  failure write_again(const storage::entry& stated, const request& r, const std::byte* memory) noexcept;

  const storage::file_id id_;
  const bool writable_;
  storage::growing_file bytes_;

  mutable mutex mutex_;
  bool wrote_ OOC_GUARDED_BY(mutex_) = false;

  /// Outlives the file where the end of a transfer is being told.
  const std::shared_ptr<in_flight> traffic_;
};

}  // namespace ooc::mpiio
