// Where a node keeps its stripe objects:  <folder>/shares/<2 hex digits>/<16 hex digits>.{data,sum,undo,side}
//
// The 16 digits are the file's id, the 2 are its last ones.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/layout/file_shape.hpp"

namespace ooc::storage {

class node_folder {
 public:
  explicit node_folder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path data(file_id id) const { return path_ / (relative(id) + ".data"); }
  std::filesystem::path sums(file_id id) const { return path_ / (relative(id) + ".sum"); }
  std::filesystem::path undo(file_id id) const { return path_ / (relative(id) + ".undo"); }
  std::filesystem::path sides(file_id id) const { return path_ / (relative(id) + ".side"); }

  /// All that a stripe object may have; the one that says that it is there comes last.
  std::array<std::filesystem::path, 4> files(file_id id) const { return {undo(id), sides(id), data(id), sums(id)}; }

  /// "shares/0a/000000000000000a", for messages.
  static std::string relative(file_id id);
  /// Ids of the stripe objects that are there, ascending.  Returns an errno.
  int list(std::vector<file_id>& ids) const;

 private:
  std::filesystem::path path_;
};

}  // namespace ooc::storage
