// Reads that the program's thread notes itself, element by element: see access_log.
#pragma once

namespace ooc::detail {

/// Set while the calling thread reads an element through at(), which notes it itself: the fault, if
/// there is one, then does not count as a read of the block.
inline bool& exact_access() noexcept {
  // In place from the thread's start: read in fault handlers, which may not allocate.
  __attribute__((tls_model("initial-exec"))) static thread_local bool exact = false;
  return exact;
}

}  // namespace ooc::detail
