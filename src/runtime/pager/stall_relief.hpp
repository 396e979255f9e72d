// The steps that follow when an access finds no frame and nothing makes room, up to the end of the process.
//
// Usually a store in flight will free a frame.  Where none is, the modified block that was seen longest
// ago is written; blocks whose write failed are tried again, after one second, two, and three; then
// the access cannot be served: a call that waits for a block (a pin, tiles(), an algorithm) fails, and where only
// touches wait, the process ends.  Where nothing failed and still no frame is to be had, as all are pinned or busy,
// that is so after a minute.  Time in which the process was stopped (Ctrl-Z, a debugger, a virtual machine that was
// paused) is not counted: nothing could make room then.
//
// Lock: the pager's.  Threads: the service thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "runtime/pager/block_writer.hpp"
#include "runtime/pager/pager_state.hpp"

namespace ooc::detail {

class stall_relief {
 public:
  stall_relief(pager_state& state, block_writer& writer, std::function<void(const failure&)> on_fatal)
      : state_(state), writer_(writer), on_fatal_(std::move(on_fatal)) {}

  /// Called whenever the service thread has nothing else to do while somebody waits for a frame.
  void relieve(unique_lock& l) OOC_REQUIRES(pager_mutex);
  /// One message, the program's own handler, the other dirty blocks, and the documented status.
  void end_process(unique_lock& l) OOC_REQUIRES(pager_mutex);

 private:
  void give_up(const failure& cause) OOC_REQUIRES(pager_mutex);
  void notice_stop() noexcept;

  pager_state& state_;
  block_writer& writer_;
  const std::function<void(const failure&)> on_fatal_;
  unsigned retries_ = 0;           ///< of failed writes, since one has succeeded
  std::uint64_t stored_seen_ = 0;  ///< block_writer::stored() when `retries_` was last right
  std::uint64_t nudged_ = 0;       ///< when everybody was last made to look again
  std::uint64_t looked_ = 0;       ///< when relieve() was last called
  std::uint64_t went_on_ = 0;      ///< when it was called after a longer time than while somebody waits
};

}  // namespace ooc::detail
