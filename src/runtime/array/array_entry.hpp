// What array_core.cpp and array_together.cpp share.
#pragma once

#include "oocarray/detail/array_core.hpp"
#include "runtime/array/file_claims.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::detail {

/// The file behind an array, as it is now.
struct array_entry {
  storage::opened_file opened;
};

/// How the process, or the group of processes, will write to the file.
writing writing_as(const array_request& r);

}  // namespace ooc::detail
