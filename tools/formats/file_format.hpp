// Formats of the files that `ooc import` and `ooc export` read and write.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/command.hpp"
#include "formats/hdf5_signature.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::tool {

enum class file_format { raw, npy, hdf5 };

/// What --format says, or the end of the file's name.
inline file_format format_of(const command_line& line, const std::string& file) {
  if (!line.has("format")) {
    if (file.ends_with(".npy")) return file_format::npy;
    for (const char* end : {".h5", ".hdf5", ".he5", ".nc", ".nc4"})
      if (file.ends_with(end)) return file_format::hdf5;
    return file_format::raw;
  }
  const std::string name = line.text("format");
  if (name == "raw") return file_format::raw;
  if (name == "npy") return file_format::npy;
  if (name == "hdf5") return file_format::hdf5;
  throw usage_mistake("--format: '" + name + "' is none of npy, raw and hdf5");
}

/// The same of a file that is there: one of an unknown ending that is not said to be raw is HDF5 where it has the
/// signature (MATLAB's .mat, PyTables, Keras).
inline file_format format_of_input(const command_line& line, const std::string& file) {
  const file_format f = format_of(line, file);
  const bool said = line.has("format") || line.has("type") || line.has("shape");
  std::error_code ec;
  if (f != file_format::raw || said || !std::filesystem::is_regular_file(file, ec)) return f;
  const storage::file_descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return opened && hdf5_superblock(opened.get()) ? file_format::hdf5 : f;
}

}  // namespace ooc::tool
