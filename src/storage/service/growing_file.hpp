// A file without extents that is open in this process: as it is known now, and how it becomes longer.
//
// Other programs read, write, grow and cut the same file.  What is known here is therefore a snapshot.  It is asked for
// again where it may be too short (reaching()), and where nodes have refused a write because another program has cut the
// file off (learn_of_cut()).  What was asked for
// before this process has changed the file does not replace what came of that.
//
// Whoever makes the file longer a second time will do so again: its stripe objects then get as much again as they
// have, 16 MiB to 4 GiB, or what is needed if there is no space for that.  What is reserved past the size is not seen.  It
// takes a claim to write the file together with others, and is given back with the claim (leave()); after a process that
// was killed, whoever opens the file for writing next gives it back (store_core::open).
//
// Threads: any.  One at a time makes the file longer or shorter.  Order of mutexes: growing, then the snapshot's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "oocarray/request.hpp"
#include "storage/base/mutex.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::storage {

class growing_file {
 public:
  using snapshot = std::shared_ptr<const opened_file>;

  /// `claim`: to write the file together with others, where the caller has it already.
  growing_file(std::shared_ptr<store_core> store, opened_file f, std::shared_ptr<void> claim = {});

  store_core& store() const noexcept { return *store_; }
  snapshot current() const;
  /// As the metadata have it now.
  snapshot refreshed();
  /// As it is, if it may now reach `end`: asks the metadata service only where what is known is too short.
  snapshot reaching(std::uint64_t end);
  /// What is known of the size may be wrong: reaching() asks.
  void forget_size();

  /// With at least `end` bytes.  Throws as store_core::grow().
  snapshot grown_to(std::uint64_t end);
  /// With room for `end` bytes, whether they are seen or not; for the holder of a claim.  Throws as store_core::reserve().
  snapshot roomy(std::uint64_t end);
  /// `end` bytes of `f`, which had room for them, are seen from now on.
  void seen_to(const snapshot& f, std::uint64_t end);
  /// Cuts the file off, or makes it longer.
  void resize(std::uint64_t size);

  /// Returns when the bytes are acknowledged.  The file grows, and a write that another program's cut was in the way of
  /// is made again.
  failure write(const request& r, const std::byte* memory);
  /// After a write that stated so many cuts (opened_file::meta) was refused with errc::cut_off.
  void learn_of_cut(std::uint64_t stated);

  /// Gives the claim up.  True: there was one, and what is reserved past the end is to be given back.
  bool leave();
  void give_back();

 private:
  /// Empty where it is not.
  snapshot known_to_reach(std::uint64_t end) const;
  snapshot replace(opened_file f) OOC_EXCLUDES(mutex_);

  const std::shared_ptr<store_core> store_;
  mutex growing_;
  bool grew_ OOC_GUARDED_BY(growing_) = false;
  std::shared_ptr<void> claim_ OOC_GUARDED_BY(growing_);
  mutable mutex mutex_;
  snapshot now_ OOC_GUARDED_BY(mutex_);
  bool size_known_ OOC_GUARDED_BY(mutex_) = true;
};

}  // namespace ooc::storage
