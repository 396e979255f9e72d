// A file without extents that is open in this process: as it is known now, and how it becomes longer.
//
// Other programs read, write, grow and cut the same file.  What is known here is therefore a snapshot.  It is asked for
// again where it may be too short (reaching()) or is too old (make_room()), and where nodes have refused a write
// because another program has cut the file off (learn_of_cut()).  It is replaced only by what was asked for after it
// was here:
//
//     nothing --open()--> known --an answer--> known --forget_size(), a change that another answer has overtaken--> to
//     be asked
//
// Stripe objects may be longer than the file.  What is reserved so is not seen, and takes a claim to write the file
// together with others:
//
//     no claim --claim(), a second growth, a stream without room--> claim --leave()--> no claim, and give_back()
//
// With it they get as much again as they have, 16 MiB to 4 GiB, or what is needed if there is no space for that.  The
// end of what is stored there is told by show(), unless the file was cut off since.  After a process that was killed,
// whoever opens the file for writing next gives back what was reserved (store_core::open).
//
// Invariants: cuts of a file never become fewer, but where it is moved; there is a claim only of an open file, whose
// stripe objects have the room that is known.
//
// Threads: any.  One at a time makes the file longer or shorter.  Order of mutexes: growing, then the snapshot's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "oocarray/error.hpp"
#include "oocarray/request.hpp"
#include "storage/base/mutex.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// The end of what was stored in a file that had been cut off so often (entry::cuts).  A file that is moved gets a
/// greater id, and its cuts are counted anew.
struct stored_end {
  std::uint64_t end = 0, cuts = 0;
  file_id id = 0;

  stored_end() = default;
  stored_end(std::uint64_t to, const entry& e) : end(to), cuts(e.cuts), id(e.id) {}
  /// What grows with each cut and each move.
  std::pair<file_id, std::uint64_t> state() const { return {id, cuts}; }
  bool operator==(const stored_end&) const = default;
};

/// f(bytes), which makes a file that is written on and on longer: first with as many again as `end`, but 16 MiB to 4
/// GiB, and with `end` alone if there is no space for that.
template <class F>
opened_file with_space_if_there_is(std::uint64_t end, F f) {
  constexpr std::uint64_t least = std::uint64_t{16} << 20, most = std::uint64_t{4} << 30;
  try {
    return f(end + std::clamp(end, least, most));
  } catch (const error& e) {
    if (e.code() != std::errc::no_space_on_device && e.code() != std::errc::file_too_large) throw;
  }
  return f(end);
}

class growing_file {
 public:
  using snapshot = std::shared_ptr<const opened_file>;
  using clock = std::chrono::steady_clock;

  /// Nothing may be called before open().
  explicit growing_file(std::shared_ptr<store_core> store) : store_(std::move(store)) {}
  /// `claim`: to write the file together with others, where the caller has it already.
  growing_file(std::shared_ptr<store_core> store, opened_file f, std::shared_ptr<void> claim = {})
      : growing_file(std::move(store)) {
    open(std::move(f), std::move(claim));
  }
  /// The caller has opened it, perhaps once more.
  void open(opened_file f, std::shared_ptr<void> claim);

  store_core& store() const noexcept { return *store_; }
  /// Empty before open().
  snapshot current() const;
  /// As the metadata have it now.
  snapshot refreshed();
  /// As it is, if it may now reach `end`: asks the metadata service only where what is known is too short, and not
  /// younger than `age`.
  snapshot reaching(std::uint64_t end, clock::duration age = {});
  /// The known size may be wrong: reaching() asks.
  void forget_size();

  /// With at least `end` bytes.  Throws as store_core::grow().
  snapshot grown_to(std::uint64_t end);
  /// Takes the claim.  False: another program writes the file alone.
  bool claim();
  /// Bytes that may be written without a growth: past the size where there is a claim.
  std::uint64_t room() const;
  /// Makes room for `end` bytes; without a claim the file becomes longer.  Asks where what is known is older than
  /// `age`. `stream`: much more will follow, and a claim and more room are taken if the room ends before `end`. Throws
  /// as store_core::grow() and reserve().
  void make_room(std::uint64_t end, bool stream, clock::duration age = clock::duration::max());
  /// What is to be changed of a file of which this is known.
  using wish = std::function<entry_change(const entry& now)>;
  /// The stored bytes are seen from now on, if they are there, and what is wished of the file as it is now is made.
  void show(const stored_end& stored, const wish& w);
  /// `end` bytes of `f`, which had room for them, are seen from now on.  False: `f` is out of date.
  bool seen_to(const snapshot& f, std::uint64_t end);
  /// Cuts the file off, or makes it longer.
  void resize(std::uint64_t size);

  /// Returns when the bytes are acknowledged.  The file grows, and a write that another program's cut was in the way of
  /// is made again.
  failure write(const request& r, const std::byte* memory);
  /// After a write that stated the cuts of this entry (opened_file::meta) was refused with errc::cut_off.
  void learn_of_cut(const entry& stated);

  /// Gives the claim up.  True: there was one, and what is reserved past the end is to be given back.
  bool leave();
  void give_back();

  /// Asserts the invariants; the caller has the snapshot's mutex.
  void check_invariants() const OOC_REQUIRES(mutex_);

 private:
  /// The known snapshot, where the answer is younger than `age`.
  snapshot known(clock::duration age = clock::duration::max()) const;
  /// `next` was asked for when `before` was here.  False: something else is here by now.
  bool keep(const snapshot& next, const snapshot& before) OOC_EXCLUDES(mutex_);
  /// The snapshot after a change to `before`.
  snapshot changed(const snapshot& before, opened_file f);
  bool take_claim() OOC_REQUIRES(growing_);
  bool has_claim() const;

  const std::shared_ptr<store_core> store_;
  mutex growing_;
  bool grew_ OOC_GUARDED_BY(growing_) = false;
  mutable mutex mutex_;
  std::shared_ptr<void> claim_ OOC_GUARDED_BY(mutex_);
  snapshot now_ OOC_GUARDED_BY(mutex_);
  std::optional<clock::time_point> asked_at_ OOC_GUARDED_BY(mutex_);  // none: what is known of the size may be wrong
};

}  // namespace ooc::storage
