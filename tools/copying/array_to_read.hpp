// What a command reads an array from: a store, or a file that lies somewhere else and is used in place.
//
//     runs/7/a                a path in a store, and everything else that named_path.hpp has
//     ./a.npy, file:/d/a.npy  a file of NumPy
//     ./run.zarr/g/x          the folder of an array of Zarr
//     ./run.h5/g/x            a dataset of HDF5 or NetCDF-4, as `h5ls` names it; ./run.h5: the only one
#pragma once

#include <optional>
#include <string>

#include "base/command.hpp"
#include "oocarray/open_file.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

struct array_to_read {
  ooc::store store;
  storage::opened_file file;              ///< with attributes and fill value
  std::optional<file_contents> in_place;  ///< where its elements lie; nothing: as a store has them
  std::string of_file;                    ///< in place: the file that they lie in
};

/// Throws usage_error, naming the file and the remedy, where one cannot be used in place, or does not say itself what
/// it holds.
array_to_read open_to_read(const command_line& line, const std::string& argument);
/// The same of a plain path, without "file:".
array_to_read open_in_place(const std::string& path);

/// Whether a plain path leads to an array that is no file of its own: into a file of HDF5, or to a folder of Zarr.
bool is_within_file(const std::string& path);

}  // namespace ooc::tool
