// The system calls of a node's transfers, so that a test can let them fail, end early, or wait; and memory that is
// wanting on the threads of a node.
//
// They take the place of the C library's in the test program, and do what those do until a test says otherwise.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace ooc::testing {

enum class disk_call { read, write, flush, lengthen, cut };

/// The fate of a call.
struct disk_answer {
  int error = 0;                    ///< an errno; 0: none
  std::optional<std::size_t> most;  ///< of a transfer: so many bytes at most
};

/// Whether the name of an open file ends like this.
bool is_named(int fd, const std::string& ending);

/// While it lives, every call is asked about, on the thread that makes it; it may be kept waiting there.
class failing_disk {
 public:
  using rule = std::function<disk_answer(disk_call, int fd, std::size_t bytes)>;
  explicit failing_disk(rule r);
  ~failing_disk();
  failing_disk(const failing_disk&) = delete;

 private:
  rule rule_;
};

/// While it lives, memory is refused (std::bad_alloc) to one request in `one_in`, by chance, on all threads but the one
/// that made it and where has_memory() is.
class scarce_memory {
 public:
  scarce_memory(unsigned one_in, unsigned seed);
  ~scarce_memory();
  scarce_memory(const scarce_memory&) = delete;
};

/// Where the calling thread gets its memory all the same: in the test's own completions.
class has_memory {
 public:
  has_memory();
  ~has_memory();

 private:
  const bool had_;
};

}  // namespace ooc::testing
