// An I/O node in this process: a folder that holds its stripe objects.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "storage/service/served_node.hpp"

namespace ooc::storage {

struct local_node_options {
  unsigned workers = 8;             ///< I/O threads; each runs one request at a time
  std::uint64_t staging = 1 << 18;  ///< bytes of bounce buffer per thread, multiple of 64 KiB
  bool direct_io = true;            ///< bypass the page cache where the file system can
  bool io_uring = true;             ///< use io_uring where the kernel allows it
  bool writable = true;             ///< false: nothing is made, what is there is read
  std::string store{};              ///< UUID of the store that the stripe objects must be of
};

/// Opens the node in `folder` (which must exist and, unless the options say otherwise, be writable).  Throws io_error.
std::shared_ptr<served_node> open_local_node(const std::filesystem::path& folder,
                                             const local_node_options& options = {});

}  // namespace ooc::storage
