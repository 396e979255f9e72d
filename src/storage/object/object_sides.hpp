// The commits of one stripe object: what holds together its file of sides, its header and the marks of its regions.
//
// Part of a stripe_object, which it is given with each call.  Locks are those of the stripe object; `mutex_` keeps
// apart the threads of this process that change the present bits of one region.  Functions return an errno, 0 for
// success; EBADMSG: the file of sides is damaged; ESTALE: a later commit is known.
#pragma once

#include <atomic>
#include <functional>

#include "storage/base/mutex.hpp"
#include "storage/object/side_file.hpp"

namespace ooc::storage {

class stripe_object;

class object_sides {
 public:
  explicit object_sides(side_file file) noexcept : file_(std::move(file)) {}

  /// False: its file has no commits.
  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  const side_file& file() const noexcept { return file_; }
  int make_durable() const noexcept { return file_ ? file_.make_durable() : 0; }

  /// The present bits of a region; EBADMSG where there are none although something was written.
  int read_present(const stripe_object& s, std::uint64_t region, side_bits& bits, bool* there = nullptr) const;
  /// Changes them for the holder of the locks of some of its chunks.
  int change_present(const stripe_object& s, std::uint64_t region, const std::function<void(side_bits&)>& change);

  /// Before something is written that comes after `commit`, in a header as from mark_unsynced().
  int note_commit(stripe_object& s, std::uint64_t commit, checksum_header& h);
  /// Both with the whole stripe object locked.  What was written becomes that of commit + 1, durably, as soon as the
  /// metadata say so.
  int prepare(stripe_object& s, std::uint64_t commit);
  /// What was written after the commit is forgotten.
  int roll_back(stripe_object& s, std::uint64_t commit);
  /// The header says that it is due, as found at opening.
  void expect_roll_back() noexcept { may_be_due_ = true; }
  /// Whether only roll_back() may follow: writes that were not durable are lost.
  bool roll_back_due(const stripe_object& s) const;
  /// After a loss of power, with the whole stripe object locked; then roll_back() is due.
  int mend(const stripe_object& s);

 private:
  const side_file file_;
  mutable std::atomic<bool> may_be_due_{false};  // by this process or another
  mutex mutex_;
};

}  // namespace ooc::storage
