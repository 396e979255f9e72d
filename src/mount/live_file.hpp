// A file that is open in a mount: its bytes, its size, and what of both the store does not know yet.
//
//     written --> in the buffer --seal()--> on their way --ended()--> stored --publish()--> seen by others
//                 (write_buffer)            (outgoing_write)         (unpublished)
//
// A write is answered when its bytes are here; a transfer of bytes that another one has or that are still here waits
// for it (range_queue).  Errors of what is sent later come out of the next write, flush or sync of each handle.  So
// what is here is as safe as what is in the page cache of the kernel: gone if the mount is killed, durable after
// sync().
//
// The size is the file's own while it is open: it grows with each write, and the end of what was stored is told to the
// metadata service by flush(), sync() and the last close of a writer.  Another program may cut the file off meanwhile:
// what a flush sends, and once a second what is sent before one, first asks how long the file is.  growing_file knows
// the file, and makes room: ahead of what is written, once 1 MiB was put together.  It goes back after the last writer.
//
// Any thread may call.  Functions with an `answer` do not wait for transfers, but wait for the metadata service and
// for the growth of stripe objects where the file must grow; so an `answer`, which runs on any thread, also on one that
// a node answers on, calls none of them.  The others wait.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "mount/outgoing_write.hpp"
#include "mount/range_queue.hpp"
#include "mount/unpublished.hpp"
#include "mount/write_buffer.hpp"
#include "storage/base/job_threads.hpp"
#include "storage/service/growing_file.hpp"

namespace ooc::mount {

using storage::file_id;

class live_file : public std::enable_shared_from_this<live_file> {
 public:
  using answer = std::function<void(int error)>;
  using read_answer = std::function<void(int error, std::span<const std::byte>)>;

  live_file(std::shared_ptr<storage::store_core> core, job_threads<>& jobs, file_id id)
      : jobs_(jobs), id_(id), bytes_(std::move(core)) {}

  /// Finds the file as it is now, and opens it for writing if it was not; throws as store_core::open does.  `removed`:
  /// it was removed while it was open, and goes when the last one closes it.
  void open(bool write, bool removed = false);
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
  /// Zeros in place of bytes.  The errno of what did not get there.
  int zero(std::uint64_t offset, std::uint64_t length);
  /// Errno: EPERM for an array.
  int resize(std::uint64_t size);
  /// Room for the bytes before `end` without a change of the size, or with one.
  int allocate(std::uint64_t end, bool keep_size);

  /// Adds to `e` the changes that are known here and not there yet; and learns those that others have made to the
  /// file.
  void overlay(storage::entry& e);
  std::uint64_t size() const;

  /// The errno of a write that failed after it was answered, once for each reader of `seen`.
  int take_error(std::uint64_t& seen) const;
  std::uint64_t errors_so_far() const;

 private:
  using outgoing = std::shared_ptr<outgoing_write>;
  /// The place of somebody whom all others wait for, left by the last copy.
  using turn = std::shared_ptr<void>;

  outgoing seal() OOC_REQUIRES(mutex_);
  void send(const outgoing& w, answer done, bool seen_soon = false);
  void ended(const outgoing_write& w, int error);
  void read_stored(std::uint64_t offset, std::uint64_t end, const read_answer& done);
  void synced(int error, const answer& done);
  int publish();
  void after_all(std::function<void(const turn&)> go);
  turn wait_for_all();

  job_threads<>& jobs_;
  const file_id id_;
  range_queue ranges_;
  storage::growing_file bytes_;

  /// Held while the file is opened, published, or left by its last writer; before mutex_.
  mutable mutex changing_;
  bool writable_ OOC_GUARDED_BY(changing_) = false;

  mutable mutex mutex_;
  unpublished unpublished_ OOC_GUARDED_BY(mutex_);
  write_buffer buffer_ OOC_GUARDED_BY(mutex_);
  std::size_t sending_ OOC_GUARDED_BY(mutex_) = 0;  // bytes
  unsigned writers_ OOC_GUARDED_BY(mutex_) = 0;
  int error_ OOC_GUARDED_BY(mutex_) = 0;
  std::uint64_t errors_ OOC_GUARDED_BY(mutex_) = 0;
};

}  // namespace ooc::mount
