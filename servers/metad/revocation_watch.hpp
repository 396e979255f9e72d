// The list of revoked keys as the metadata server has it: read when it starts, and again whenever
// the file changes.
//
// One thread.
#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "storage/wire/greeting.hpp"

namespace ooc::metad {

class revocation_watch {
 public:
  /// Reads `file`; empty: there is no list, and never will be.  Throws as revocations::read() does:
  /// a server that does not know whom to refuse does not start.
  explicit revocation_watch(std::filesystem::path file);

  /// Reads the file again where it has changed.  If that fails, or the file has gone, it is logged,
  /// and what was known goes on: a file that is lost makes no revoked key good.
  void look();
  const wire::revocations_ptr& current() const noexcept { return current_; }

 private:
  void read();

  const std::filesystem::path file_;
  struct ::stat seen_ {};  // of the file when it was last looked at
  wire::revocations_ptr current_;
};

}  // namespace ooc::metad
