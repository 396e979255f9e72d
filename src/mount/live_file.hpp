// A file that is open in a mount: its bytes, its size, and what of both the store does not know yet.
//
// Writes are put together, up to 1 MiB in a bounded number of places (write_buffer), and then sent as one request; a
// transfer of bytes that another one has or that are still here waits for it (range_queue).  A write is answered when
// its bytes are here; errors of what is sent later come out of the next write, flush or sync of each handle.  So what is
// here is as safe as what is in the page cache of the kernel: gone if the mount is killed, durable after sync().
//
// The size is the file's own while it is open: it grows with each write, and the end of what was stored is told to the
// metadata service (`publish`) by flush(), sync() and the last close of a writer.  Another program may cut the file off
// meanwhile: what a flush sends, and once a second what is sent before one, first asks how long the file is.  What is sent
// without asking is refused by the nodes, and sent again after that.  What was stored before the cut is gone, and its end
// is not published.
//
// The stripe objects grow ahead of the size, by at least `stream_step` and by doubling (up to `greatest_step`), once
// 1 MiB was put together; who has grown them that way holds a claim to write the file together with others, and gives
// back what is past the size after the last writer.
//
// Any thread may call.  Functions with an `answer` do not wait for transfers, but wait for the metadata service and
// for the growth of stripe objects where the file must grow; `answer` runs on any thread.  The others wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "mount/range_queue.hpp"
#include "mount/write_buffer.hpp"
#include "storage/base/job_threads.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::mount {

/// The time of day as entries have it.
std::int64_t now_ns();

using storage::file_id;

class live_file : public std::enable_shared_from_this<live_file> {
 public:
  static constexpr std::uint64_t stream_step = std::uint64_t{64} << 20;
  static constexpr std::uint64_t greatest_step = std::uint64_t{4} << 30;

  using answer = std::function<void(int error)>;
  using read_answer = std::function<void(int error, std::span<const std::byte>)>;

  live_file(std::shared_ptr<storage::store_core> core, job_threads<>& jobs, file_id id)
      : core_(std::move(core)), jobs_(jobs), id_(id) {}

  /// Finds the file as it is now, and opens it for writing if it was not; throws as store_core::open does.
  void open(bool write);
  void close(bool write);
  /// Somebody here has it open for writing.
  bool writable() const;
  /// For all who have not closed it when the mount ends.
  void close_all();

  void read(std::uint64_t offset, std::size_t length, read_answer done);
  /// `through`: answered when the bytes are acknowledged by the store.
  void write(std::uint64_t offset, std::span<const std::byte> bytes, bool through, answer done);
  /// Everything written so far is acknowledged, and its size visible to others.
  void flush(answer done);
  /// The same, and durable.
  void sync(answer done);
  int flush_and_wait();
  /// Errno: EPERM for an array.
  int resize(std::uint64_t size);
  /// Room for the bytes before `end` without a change of the size, or with one.
  int allocate(std::uint64_t end, bool keep_size);

  /// What is known here and not there yet; and learns what others have made of the file.
  void overlay(storage::entry& e);
  std::uint64_t size() const;

  /// The errno of a write that failed after it was answered, once for each reader of `seen`.
  int take_error(std::uint64_t& seen) const;
  std::uint64_t errors_so_far() const;
  /// Removed, while it was open: when the last one closes it, it goes for good.
  void set_removed(const storage::entry& e);
  std::optional<storage::entry> removed() const;

 private:
  struct sealed;
  /// What was written since everything was published.  Several MiB are on their way together: where one of them finds no
  /// room, and one behind it does, the file would get a hole.
  struct unpublished {
    std::optional<std::uint64_t> end;           ///< of the last write
    bool appended = true;                       ///< each began where the one before ended, and before any was refused
    std::optional<std::uint64_t> no_room_from;  ///< the first byte that was refused
  };
  using opened = std::shared_ptr<const storage::opened_file>;

  std::shared_ptr<sealed> seal() OOC_REQUIRES(mutex_);
  void store(std::shared_ptr<sealed> s, answer ended, bool again = false);
  void send(std::shared_ptr<sealed> s, answer done);
  void store_after_cut(std::shared_ptr<sealed> s, const storage::opened_file& refused, answer ended);
  int grow(std::uint64_t end, bool stream, bool ask);
  bool reserve(std::uint64_t end) OOC_REQUIRES(changing_);
  int publish();
  void fail(int error);
  void after_all(std::function<void(range_queue::ticket)> go);
  opened current() const;
  void replace(storage::opened_file f) OOC_REQUIRES(changing_);
  void last_writer_left();

  const std::shared_ptr<storage::store_core> core_;
  job_threads<>& jobs_;
  const file_id id_;
  range_queue ranges_;

  /// Held while the stripe objects change; before mutex_.
  mutable mutex changing_;
  std::shared_ptr<void> claim_ OOC_GUARDED_BY(changing_);
  bool writable_ OOC_GUARDED_BY(changing_) = false;
  std::chrono::steady_clock::time_point asked_at_ OOC_GUARDED_BY(changing_);  // how long the file is

  mutable mutex mutex_;
  std::optional<storage::entry> removed_ OOC_GUARDED_BY(mutex_);
  opened file_ OOC_GUARDED_BY(mutex_);
  std::uint64_t size_ OOC_GUARDED_BY(mutex_) = 0;
  std::uint64_t untold_end_ OOC_GUARDED_BY(mutex_) = 0;             // of what is there and not published
  unpublished unpublished_ OOC_GUARDED_BY(mutex_);
  std::optional<std::int64_t> modified_ns_ OOC_GUARDED_BY(mutex_);  // there: not published
  write_buffer buffer_ OOC_GUARDED_BY(mutex_);
  std::size_t sending_ OOC_GUARDED_BY(mutex_) = 0;  // bytes
  unsigned writers_ OOC_GUARDED_BY(mutex_) = 0;
  int error_ OOC_GUARDED_BY(mutex_) = 0;
  std::uint64_t errors_ OOC_GUARDED_BY(mutex_) = 0;
};

}  // namespace ooc::mount
