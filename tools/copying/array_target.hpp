// Where `ooc import` puts an array: a new one, that has its name when it is complete, or a place in one that is there.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/command.hpp"
#include "storage/layout/box_requests.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

class array_target {
 public:
  virtual ~array_target() = default;
  /// Writes the elements lower <= i < upper of what is copied, row-major.
  void write(const storage::index& lower, const storage::index& upper, std::span<std::byte> slab);
  /// The elements that are copied, with the tiles of the target.
  const storage::array_description& copied() const noexcept { return copied_; }
  /// For who opens it as an array and writes from `at()` on himself: where it is from now on.
  virtual located as_array() = 0;
  const storage::index& at() const noexcept { return at_; }
  /// Everything is there: makes it durable, and a new array visible.  Without it nothing stays of a new array, and an
  /// array that was appended to has its former extents.
  virtual void publish() = 0;

 protected:
  storage::array_description copied_;
  storage::index at_;          ///< of the first element of what is copied
  storage::opened_file file_;  ///< with the description of all of it
};

struct new_array {
  storage::new_file file;
  std::map<std::string, std::string> attributes;
  bool replace = false;   ///< what is there
  bool as_array = false;  ///< array_target::as_array() will be called
};
/// Makes the folders on the way.  Throws usage_error (EEXIST) where there is something that is not to be replaced.
std::unique_ptr<array_target> make_array(const located& where, new_array made);

/// The elements that are copied into an array that is there.
struct array_part {
  storage::array_description elements;  ///< type and extents
  std::string description;              ///< of the elements (attribute `dtype`), if they have one
  storage::index at;                    ///< empty: behind the last row, for which it grows
};
/// Throws usage_error (errc::type_mismatch, errc::invalid_request) where the array has other elements or no room, with
/// nothing changed.
std::unique_ptr<array_target> part_of_array(const located& where, const array_part& part);

}  // namespace ooc::tool
