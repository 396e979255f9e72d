// Formats of the files that `ooc import` and `ooc export` read and write.
#pragma once

#include <string>

#include "base/command.hpp"

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

}  // namespace ooc::tool
