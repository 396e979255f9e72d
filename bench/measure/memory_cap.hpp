// A limit on a process's memory, page cache included: so that a mapped file gets no more memory than
// the arrays that it is compared with.
//
// A control group below that of this process (cgroup v1 or v2), made by the constructor and removed
// by the destructor.  Where none can be made, active() is false and nothing is limited: the case
// then says `capped: false`.
#pragma once

#include <cstdint>

#include "measure/control_group.hpp"

namespace bench {

class memory_cap {
 public:
  /// bytes == 0: no limit is wanted.
  explicit memory_cap(std::uint64_t bytes);

  bool active() const noexcept { return group_.active(); }
  /// Moves the calling process, which must have one thread, into the group.
  void enter() const { group_.enter(); }

 private:
  control_group group_;
};

/// True if a memory cap can be had here.
bool can_cap_memory();

}  // namespace bench
