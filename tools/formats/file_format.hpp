// Formats of the files that `ooc import` and `ooc export` read and write.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/command.hpp"
#include "formats/hdf5_signature.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::tool {

enum class file_format { raw, npy, npz, hdf5 };

inline bool names_netcdf(std::string_view file) { return file.ends_with(".nc") || file.ends_with(".nc4"); }

/// The format that --format gives, or the end of the file's name.
inline file_format format_of(const command_line& line, const std::string& file) {
  if (!line.has("format")) {
    if (file.ends_with(".npy")) return file_format::npy;
    if (file.ends_with(".npz")) return file_format::npz;
    if (names_netcdf(file)) return file_format::hdf5;
    for (const char* end : {".h5", ".hdf5", ".he5"})
      if (file.ends_with(end)) return file_format::hdf5;
    return file_format::raw;
  }
  const std::string name = line.text("format");
  if (name == "raw") return file_format::raw;
  if (name == "npy") return file_format::npy;
  if (name == "npz") return file_format::npz;
  if (name == "hdf5") return file_format::hdf5;
  throw usage_mistake("--format: '" + name + "' is none of npy, npz, raw and hdf5");
}

/// For an array that is written to a file: refuses a name whose ending promises a format that is not written here,
/// unless --format says that raw bytes are meant.
inline void require_written_format(const command_line& line, const std::string& file) {
  const std::string_view name = std::string_view(file).substr(file.find_last_of('/') + 1);
  const auto dot = name.find_last_of('.');
  if (line.has("format") || dot == name.npos || dot == 0) return;
  const std::string_view ending = name.substr(dot);
  for (const std::string_view raw : {".raw", ".bin", ".dat"})
    if (ending == raw) return;
  throw usage_mistake("'" + file + "': no format that ooc writes ends in '" + std::string(ending) +
                      "'; name it .npy, .h5, .hdf5 or .nc, or .raw, .bin or .dat for the bytes of the elements alone, "
                      "which --format raw writes under any name");
}

/// Whether a file can be read and begins as those of HDF5 do.
inline bool has_hdf5_signature(const std::string& file) {
  const storage::file_descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return opened && hdf5_superblock(opened.get());
}

/// As format_of(), of a file that is there: one of an unknown ending that is not said to be raw is HDF5 where it has
/// the signature (MATLAB's .mat, PyTables, Keras).
inline file_format format_of_input(const command_line& line, const std::string& file) {
  const file_format f = format_of(line, file);
  const bool said = line.has("format") || line.has("type") || line.has("shape");
  std::error_code ec;
  if (f != file_format::raw || said || !std::filesystem::is_regular_file(file, ec)) return f;
  return has_hdf5_signature(file) ? file_format::hdf5 : f;
}

}  // namespace ooc::tool
