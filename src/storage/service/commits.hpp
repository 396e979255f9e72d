// Commits of files, on the nodes and in the metadata (docs/decisions/0044-commits-of-stripe-objects.md).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// The metadata service has not answered whether it has carried out a commit.
class commit_in_doubt : public io_error {
 public:
  using io_error::io_error;
};

/// The present contents, sizes, extents and attributes of these files with commits, which the caller alone writes, are
/// those of their next commit: all or none, durably, and nothing is being written.  Returns them as they then are.
/// Where it throws `commit_in_doubt`, nobody knows whether it was made, and the caller must not write to the files any
/// more; after all else that it throws it was not.
std::vector<opened_file> commit(store_core& store, std::span<const opened_file> files,
                                const std::map<std::string, std::string>& attributes);

/// Contents, size, extents and attributes of a file with commits, which the caller alone writes, become those of the
/// last one.
opened_file roll_back(store_core& store, const opened_file& f);

}  // namespace ooc::storage
