// The sources of `ooc import`: one array in a .npy, .npz or raw file, or a file of HDF5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/command.hpp"
#include "copying/array_target.hpp"
#include "copying/box_walk.hpp"
#include "storage/layout/array_description.hpp"

namespace ooc::tool {

class array_source {
 public:
  virtual ~array_source() = default;

  storage::array_description array;  ///< type and extents of all of it
  std::string description;           ///< of its elements, where their name does not say it (attribute `dtype`)
  std::vector<std::byte> fill;       ///< one element; empty: zeros
  std::map<std::string, std::string> attributes;
  std::vector<std::string> left_out;  ///< a line for each thing that no array has
  std::vector<std::string> notes;     ///< what copy() has to say
  /// The target is written as an array (array_target::as_array()).
  virtual bool writes_array() const { return false; }

  /// Throws where not all elements of `part` can be had.
  virtual void check(const box& part) { (void)part; }

  /// Moves the elements of `part` to the target, with two buffers of that many bytes.  `advance` is called with
  /// the bytes that have been written since the last call.
  virtual void copy(const box& part, array_target& to, std::uint64_t buffer,
                    const std::function<void(std::uint64_t)>& advance) = 0;
};

/// The options of import that say what a file holds: --format, --dataset, --type, --shape, --offset, --transpose.
void add_source_options(command_line& line);
/// The arrays of a file that may hold several; empty: it is none such.
std::vector<std::string> arrays_in(const command_line& line, const std::string& file);
/// `dataset`: what --dataset names, or one of arrays_in().  Throws usage_error and usage_mistake that name
/// the file.
std::unique_ptr<array_source> open_array_source(const command_line& line, const std::string& file,
                                                const std::string& dataset);

}  // namespace ooc::tool
