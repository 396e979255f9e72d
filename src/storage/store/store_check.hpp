// Checking a store: every byte against its checksum, every stripe object against the name space.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

struct check_result {
  std::uint64_t files = 0;
  std::uint64_t objects = 0;
  std::uint64_t chunks = 0;           ///< 4 KiB chunks read
  std::uint64_t corrupt = 0;          ///< chunks whose bytes are not what was written
  std::uint64_t lost = 0;             ///< chunks whose checksums, or whose stripe objects, are gone
  std::uint64_t lost_objects = 0;     ///< stripe objects that are gone
  std::uint64_t unread = 0;           ///< stripe objects that cannot be read for another reason
  std::uint64_t torn = 0;             ///< chunks whose overwrite was cut short by a crash
  std::vector<std::string> problems;  ///< a line each; damage, missing stripe objects, orphans
  struct orphan {
    std::uint32_t node;
    file_id id;
  };
  struct damage {
    std::string file;       ///< its path
    std::uint32_t node;     ///< index in the store
    std::string node_name;  ///< its folder or address
  };
  std::vector<damage> damaged;  ///< where corrupt, lost or torn chunks are, or a stripe object cannot be read
  std::vector<orphan> orphans;  ///< stripe objects that no entry knows; only for the whole store

  bool clean() const noexcept {
    return problems.empty() && lost_objects == 0 && unread == 0 && corrupt == 0 && torn == 0 && lost == 0;
  }
};

/// Reads the file at `path`, or all files in the folder; for the root also looks for orphans.
/// `step(done, total)` is told the bytes after each stripe object.  Nothing is changed.
check_result check_store(store_core& core, std::string_view path,
                         const std::function<void(std::uint64_t, std::uint64_t)>& step);

/// Removes the stripe objects that check_store() found without an entry.
void remove_orphans(store_core& core, const std::vector<check_result::orphan>& orphans);

}  // namespace ooc::storage
