// Bytes of a file on their way from the write buffer to the store, with their place in the queue of its transfers.
//
//     queued --send()--> waits for what is earlier --> sent --acknowledged--> ended
//                                 ^                     |
//                                 +-- cut off, or no ---+   room is made again; where none was found, once more after
//                                     space                 the stripe objects of removed files have gone
//
// Where the file finds no room for all of them, those before the end of its room are sent, and the error is that of the
// rest. Any thread may call; send() once, and the rest when it has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "mount/range_queue.hpp"
#include "mount/write_buffer.hpp"
#include "storage/base/job_threads.hpp"
#include "storage/service/growing_file.hpp"

namespace ooc::mount {

/// So old may be what is known of the size while bytes are sent, or read before others that were not told.
inline constexpr std::chrono::seconds asked_anew{1};

/// growing_file::make_room() as an errno: EFBIG for an array.  `ask`: what is known of the file may not even be a
/// second old.
int make_room(storage::growing_file& file, std::uint64_t end, bool stream, bool ask);

class outgoing_write : public std::enable_shared_from_this<outgoing_write> {
 public:
  /// Takes what is in the buffer, which is not empty, and its place in the queue; where memory for that is wanting
  /// (std::bad_alloc), the bytes stay in the buffer.  File, jobs and queue must be there until it has ended.
  outgoing_write(write_buffer& from, storage::growing_file& file, job_threads<>& jobs, range_queue& queue);

  /// `ended` gets the errno, on any thread, and leaves the place in the queue.  `seen_soon`: its end will be told then.
  void send(bool seen_soon, std::function<void(int error)> ended);

  std::uint64_t begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  range_queue::ticket place() const { return place_; }
  /// The end of the bytes that are in the store.
  storage::stored_end stored() const { return stored_; }

 private:
  void store_in_room();
  void store();
  void acknowledged(const failure& f);
  void post(void (outgoing_write::*step)());
  void store_after_cut();
  void store_after_removals();

  storage::growing_file& file_;
  job_threads<>& jobs_;
  range_queue& queue_;
  page_memory memory_;
  const bool stream_;
  std::shared_ptr<const request> wanted_;
  std::uint64_t begin_ = 0;  // in the file
  std::size_t bytes_ = 0;
  range_queue::ticket place_;
  std::function<void(int)> ended_;
  int lost_ = 0;  // errno of what found no room
  bool found_no_space_ = false;
  storage::growing_file::snapshot sent_as_;
  storage::stored_end stored_;
};

}  // namespace ooc::mount
