#include "storage/base/lost_data.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <iostream>

#include "oocarray/runtime.hpp"

namespace ooc::detail {
namespace {

std::atomic<pid_t> loser{0};       ///< the process that has lost data
std::atomic<bool> is_late{false};  ///< what ends the process has been and gone

void end_as_loser() noexcept {
  if (loser.load() != ::getpid()) return;
  std::cout.flush();  // a buffer of its own, where it is not in step with stdout
  std::fflush(nullptr);
  ::_exit(fatal_exit_status);
}

/// Ends after what a program makes in main() or later, and opened arrays with.
const struct last_of_all {
  last_of_all() = default;
  last_of_all(const last_of_all&) = delete;
  last_of_all& operator=(const last_of_all&) = delete;
  ~last_of_all() {
    is_late = true;
    end_as_loser();
  }
} at_last;

}  // namespace

void data_were_lost() noexcept {
  loser = ::getpid();
  if (is_late) end_as_loser();
}

void forget_lost_data() noexcept { loser = 0; }

}  // namespace ooc::detail
