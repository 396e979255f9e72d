// The list of revoked keys as the metadata server has it: read when it starts, and again whenever
// the file changes.  What it has said is remembered in the server's folder: a list that is lost or
// that came back from an old copy makes no key good, when the server is started again neither.
//
// One thread.
#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "storage/wire/greeting.hpp"

namespace ooc::metad {

class revocation_watch {
 public:
  /// Reads both; `file` empty: there is no list, and never will be.  Throws as revocations::read()
  /// does: a server that does not know whom to refuse does not start.
  revocation_watch(std::filesystem::path file, std::filesystem::path memory);

  /// Reads the file again where it has changed, and adds what it says.  If that fails, or the file
  /// has gone, it is logged, and what was known goes on.
  void look();
  const wire::revocations_ptr& current() const noexcept { return current_; }

 private:
  void read();

  const std::filesystem::path file_, memory_;
  struct ::stat seen_ {};  // of the file when it was last looked at
  wire::revocations_ptr current_;
};

}  // namespace ooc::metad
