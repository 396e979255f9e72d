// The commits of one stripe object: what holds together its file of sides, its header and the marks of its regions.
//
// Part of a stripe_object, which it is given with each call.  Locks are those of the stripe object; `mutex_` keeps
// apart the threads of this process that write present bits, and those that have seen them half written.  Functions
// return an errno, 0 for success; EBADMSG: the file of sides is damaged; ESTALE: a later commit is known.
#pragma once

#include <atomic>
#include <functional>

#include "storage/base/mutex.hpp"
#include "storage/object/side_file.hpp"

namespace ooc::storage {

class stripe_object;

class object_sides {
 public:
  /// Before anybody else has the stripe object.
  void use(side_file file) noexcept { file_ = std::move(file); }

  /// False: its file has no commits.
  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  const side_file& file() const noexcept { return file_; }

  /// The present bits of a region; EBADMSG where there are none although something was written, or, without the locks
  /// of its chunks, where another process is writing them.
  int read_present(const stripe_object& s, std::uint64_t region, side_bits& bits) const;
  /// The same for who is about to write there.
  int begin_present(const stripe_object& s, std::uint64_t region, side_bits& bits);
  /// Before the first write to a group; EBADMSG where it is not the first one.
  int begin_group(const stripe_object& s, std::uint64_t group);
  /// Changes present bits for the holder of the locks of some of their chunks.
  int change_present(const stripe_object& s, std::uint64_t region, const std::function<void(side_bits&)>& change);

  /// Both with the whole stripe object locked.  What was written becomes that of commit + 1, durably, as soon as the
  /// metadata say so.
  int prepare(stripe_object& s, std::uint64_t commit);
  /// Forgets the bytes that were written after the commit; `add` is called for the regions that have any.
  int roll_back(stripe_object& s, std::uint64_t commit, const std::function<void(std::uint64_t region)>& add);
  /// Whether a header says that roll_back() is due: also where nobody who may write has mended yet what another boot
  /// has left.
  static bool is_behind(const checksum_header& h) noexcept;
  void expect_roll_back() noexcept { may_be_due_ = true; }
  /// Whether only roll_back() may follow: writes that were not durable are lost.
  bool roll_back_due(const stripe_object& s) const;
  /// After a loss of power, with the whole stripe object locked; then roll_back() is due.
  int mend(const stripe_object& s, std::uint64_t places);

 private:
  int look_at_present(const stripe_object& s, std::uint64_t region, side_bits& bits, bool& there) const;

  side_file file_;
  mutable std::atomic<bool> may_be_due_{false};  // by this process or another
  mutable mutex mutex_;
};

}  // namespace ooc::storage
