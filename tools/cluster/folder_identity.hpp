// The files by which servers know their folders, as others read them.
#pragma once

#include <istream>
#include <string>

namespace ooc::cluster {

inline constexpr const char *metad_identity = "oocarray-metadata", *iod_identity = "oocarray-iod";

/// The store that the folder belongs to, as the text of that file says; empty: none yet, or there is no such file.
inline std::string store_in(std::istream& identity) {
  for (std::string line; std::getline(identity, line);)
    if (line.starts_with("store ")) return line.substr(6, line.find(' ', 6) - 6);
  return {};
}

}  // namespace ooc::cluster
