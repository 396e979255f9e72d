// From version 1 of the disk format to version 2, in place.
//
// Order: the database (one transaction; from then on version 1 programs refuse the store), the stripe objects
// one by one (a new `.sum` beside the old, synced, renamed over it), last the files that say whose a
// folder is (until then version 2 programs refuse the store and name `ooc upgrade`).  Data are not
// moved.  Each step is whole or not there, and what is done is told by its own version: so the
// upgrade may be killed at any moment, and the next one goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ooc::storage {

struct upgrade_result {
  std::uint64_t objects = 0;           ///< converted by this run
  std::uint64_t already = 0;          ///< of version 2 before
  std::vector<std::string> problems;  ///< stripe objects that were left as they are, and why: a line each
};

/// Upgrades the folders of one local store (all of them), or the folders of a metadata server and of
/// any of its I/O servers.  `metadata`: for folders of I/O servers without that of their metadata
/// server, a copy of it (`oocarray-metadata` and the database); only read.  `step` is told of each
/// step before it is made.  Throws usage_error where folders are missing, of another store or in use,
/// io_error where one cannot be used.
upgrade_result upgrade_store(const std::vector<std::filesystem::path>& folders,
                             const std::filesystem::path& metadata,
                             const std::function<void(const std::string&)>& step);

}  // namespace ooc::storage
