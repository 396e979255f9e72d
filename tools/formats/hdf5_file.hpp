// Datasets of HDF5 files, and of NetCDF-4 files, which are HDF5 files: what they are, and their
// elements by boxes.
//
// Attributes become texts.  What was no text is noted in the attribute `hdf5.types`, in JSON ("f8",
// "i4[2,3]"), so that hdf5_output can give it its type back.  The names of the dimensions (labels,
// or the scales of dimensions) become the attribute `dimensions`, a list in JSON, as
// oocarray.xarray has it; of a scalar, which is an array of one element here, it is "[]".  They are written as
// NetCDF-4 does, by scales.
//
// Failures throw usage_error or io_error that names file, dataset and remedy.  libhdf5 is not for
// threads: one call at a time, of any thread.  An ooc that was built without libhdf5 throws
// usage_mistake from the constructors.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/detail/chunk_memory.hpp"
#include "oocarray/open_file.hpp"
#include "storage/layout/box_requests.hpp"

namespace ooc::tool {

class hdf5_input {
 public:
  /// `dataset` empty: the only one there is.
  hdf5_input(const std::string& file, const std::string& dataset);
  ~hdf5_input();

  const std::string& dataset() const;
  const storage::array_description& array() const;
  /// Of its elements, where their name does not say it (element_description.hpp).
  const std::string& description() const;
  /// Whether read() gives such elements as the file has them.
  bool is_stored_as_described() const;
  /// Shape of the pieces in which it is stored; empty: it is contiguous.
  const storage::index& chunk() const;
  const std::vector<std::byte>& fill() const;  ///< one element; empty: zeros
  const std::map<std::string, std::string>& attributes() const;
  const std::vector<std::string>& left_out() const;  ///< a line for each attribute that is no text
  /// Row-major.
  void read(const storage::index& lower, const storage::index& upper, std::span<std::byte> out);

  /// Looks at the other files that the elements of a box are taken from (hdf5_sources.hpp), before and after they are
  /// read: libhdf5 would make up what is missing.  Throws usage_error that names the sources, unless `fill`: read()
  /// then gives the fill value for what is lost.
  void check_sources(const storage::index& lower, const storage::index& upper, bool fill);
  /// How many elements that was, and why; nothing: none.
  std::string filled() const;
  /// Throws usage_error where unpacking a chunk needs more memory than there is.
  void check_memory(const detail::memory_limit& limit) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Where the elements of a dataset lie, for who reads them past libhdf5.
struct hdf5_place {
  std::string path;  ///< of the file that has them
  file_contents contents;
};
/// Throws usage_error, with the remedy, where they cannot be used there, or are not of the type that `in` has, which
/// libhdf5 would convert them to.
hdf5_place hdf5_in_place(const std::string& file, const hdf5_input& in);

/// The datasets of a file with the folders that they are in, but for dimensions of NetCDF-4 that have no values. Throws
/// as hdf5_input does.
std::vector<std::string> hdf5_dataset_names(const std::string& file);

/// Attributes of a group, as those of a dataset.
struct hdf5_group {
  std::string path;  ///< empty: the root, whose attributes NetCDF calls global
  std::map<std::string, std::string> attributes;
  std::vector<std::string> left_out;  ///< a line for each that is no text
};
/// The groups of a file that have attributes.
std::vector<hdf5_group> hdf5_groups(const std::string& file);
/// The attributes to be set where `there` are attributes already: all of `more`, and the types of both.
std::map<std::string, std::string> added_attributes(const std::map<std::string, std::string>& there,
                                                    std::map<std::string, std::string> more);

/// A dataset that is to be written.
struct hdf5_dataset {
  std::string name;
  storage::array_description array;  ///< type and extents count
  std::string description;           ///< of elements that are so many bytes; empty: opaque ones
  storage::index chunk;              ///< empty: contiguous
  unsigned deflate = 0;              ///< 1 to 9; needs chunks
  std::vector<std::byte> fill;
  std::map<std::string, std::string> attributes;
  std::map<std::string, std::string> of_group;  ///< attributes of the group that it lies in
};

class hdf5_output {
 public:
  /// Makes the file `part`, replacing what is there; `file` is for messages.
  hdf5_output(const std::string& part, const std::string& file, const hdf5_dataset& d);
  ~hdf5_output();
  void write(const storage::index& lower, const storage::index& upper, std::span<const std::byte> in);
  /// Everything is in the file (not yet on stable storage).
  void finish();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace ooc::tool
