// An I/O node in this process: a folder that holds its shares.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "storage/io_service.hpp"

namespace ooc::storage {

struct local_node_options {
  unsigned workers = 8;            ///< I/O threads; each runs one request at a time
  std::uint64_t staging = 1 << 18; ///< bytes of bounce buffer per thread, multiple of 64 KiB
  bool direct_io = true;           ///< bypass the page cache where the file system can
  bool io_uring = true;            ///< use io_uring where the kernel allows it
};

/// Opens the node in `folder` (which must exist and be writable).  Throws io_error.
std::shared_ptr<io_service> open_local_node(const std::filesystem::path& folder,
                                            const local_node_options& options = {});

}  // namespace ooc::storage
