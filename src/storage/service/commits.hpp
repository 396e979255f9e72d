// Commits of files, on the nodes and in the metadata (docs/decisions/0044-commits-of-stripe-objects.md).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/commit.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// As users have it.
commit_info commit_info_of(const last_commit& c);

inline constexpr std::string_view commit_doubt =
    "nobody knows whether the commit was made: close the arrays and open them again, at the one or the other";

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

/// A file with commits, as of the last one, which nobody else writes while `claim` lives.
struct file_to_change {
  opened_file file;
  std::shared_ptr<void> claim;
};
/// Throws EBUSY where somebody writes it, and so it cannot be `to_be` ("replaced").
file_to_change open_to_change(store_core& store, const entry& e, std::string_view to_be);

/// As those of the metadata, by who has not opened what is there for writing.  Of a file with commits it is a commit
/// of its own; EBUSY where somebody writes it.
void set_attribute(store_core& store, const place& where, std::string_view key, std::string_view value);
void remove_attribute(store_core& store, const place& where, std::string_view key);

}  // namespace ooc::storage
