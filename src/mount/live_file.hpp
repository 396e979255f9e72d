// A file that is open in a mount: its bytes, its size, and what of both the store does not know yet.
//
// Writes that follow one another are put together, up to 1 MiB, and then sent; a transfer of bytes that another one
// has or that are still here waits for it (range_queue).  A write is answered when its bytes are here; errors of what
// is sent later come out of the next write, flush or sync of each handle.  So what is here is as safe as what is in
// the page cache of the kernel: gone if the mount is killed, durable after sync().
//
// The size is the file's own while it is open: it grows with each write and is told to the metadata service
// (`publish`) by flush(), sync() and the last close of a writer.  The stripe objects grow ahead of it, by at least
// `stream_step` and by doubling (up to `greatest_step`), once 1 MiB was written in a row; who has grown them that way holds a claim to write
// the file together with others, and gives back what is past the size after the last writer.
//
// Any thread may call.  Functions with an `answer` do not wait for transfers, but wait for the metadata service and
// for the growth of stripe objects where the file must grow; `answer` runs on any thread.  The others wait.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "mount/background.hpp"
#include "mount/range_queue.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::mount {

/// The time of day as entries have it.
std::int64_t now_ns();

using storage::file_id;

/// Bytes of memory that begin with a page.
struct page_memory {
  page_memory() = default;
  page_memory(std::size_t bytes, bool zeros);

  struct give_back {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], give_back> data;
  std::size_t bytes = 0;
};

class live_file : public std::enable_shared_from_this<live_file> {
 public:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
  static constexpr std::uint64_t stream_step = std::uint64_t{64} << 20;
  static constexpr std::uint64_t greatest_step = std::uint64_t{4} << 30;

  using answer = std::function<void(int error)>;
  using read_answer = std::function<void(int error, std::span<const std::byte>)>;

  live_file(std::shared_ptr<storage::store_core> core, background& jobs, file_id id)
      : core_(std::move(core)), jobs_(jobs), id_(id) {}

  /// Finds the file as it is now, and opens it for writing if it was not; throws as store_core::open does.
  void open(bool write);
  void close(bool write);

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
  using opened = std::shared_ptr<const storage::opened_file>;

  std::shared_ptr<sealed> seal() OOC_REQUIRES(mutex_);
  void store(std::shared_ptr<sealed> s, answer ended, bool again = false);
  void send(std::shared_ptr<sealed> s, answer done);
  int grow(std::uint64_t end, bool stream);
  bool reserve(std::uint64_t end) OOC_REQUIRES(changing_);
  int publish();
  void fail(int error);
  void after_all(std::function<void(range_queue::ticket)> go);
  opened current() const;
  void replace(storage::opened_file f) OOC_REQUIRES(changing_);
  void last_writer_left();

  const std::shared_ptr<storage::store_core> core_;
  background& jobs_;
  const file_id id_;
  range_queue ranges_;

  /// Held while the stripe objects change; before mutex_.
  mutex changing_;
  std::shared_ptr<void> claim_ OOC_GUARDED_BY(changing_);
  bool writable_ OOC_GUARDED_BY(changing_) = false;

  mutable mutex mutex_;
  std::optional<storage::entry> removed_ OOC_GUARDED_BY(mutex_);
  opened file_ OOC_GUARDED_BY(mutex_);
  std::uint64_t size_ OOC_GUARDED_BY(mutex_) = 0;
  // Where some bytes could not be stored: only those are told that were.
  std::uint64_t stored_end_ OOC_GUARDED_BY(mutex_) = 0;
  bool lost_some_ OOC_GUARDED_BY(mutex_) = false;
  std::optional<std::int64_t> modified_ns_ OOC_GUARDED_BY(mutex_);  // there: not published
  page_memory buffer_ OOC_GUARDED_BY(mutex_);
  std::uint64_t buffer_at_ OOC_GUARDED_BY(mutex_) = 0;
  std::size_t buffered_ OOC_GUARDED_BY(mutex_) = 0;
  std::size_t sending_ OOC_GUARDED_BY(mutex_) = 0;  // bytes
  unsigned writers_ OOC_GUARDED_BY(mutex_) = 0;
  int error_ OOC_GUARDED_BY(mutex_) = 0;
  std::uint64_t errors_ OOC_GUARDED_BY(mutex_) = 0;
};

}  // namespace ooc::mount
