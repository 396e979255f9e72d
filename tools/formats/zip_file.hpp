// Members of ZIP archives (NumPy's .npz), stored or deflated, read as they come, without unpacking them first.
//
// Failures throw usage_error or io_error that names file, member and remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/plain_file.hpp"

namespace ooc::tool {

struct zip_member {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t begin = 0;   ///< of its bytes in the archive
  std::uint64_t packed = 0;  ///< bytes in the archive
  std::uint64_t size = 0;    ///< bytes that it has
};

/// The files in an archive, in its order; not folders.
std::vector<zip_member> zip_members(const std::string& archive);

/// The bytes of one, from the first to the last.
class zip_reader {
 public:
  zip_reader(const std::string& archive, zip_member member);
  ~zip_reader();
  /// Fills `out` with what comes next.
  void read(std::span<std::byte> out);
  /// Nothing must be left, and the checksum must be that in the archive.
  void finish();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace ooc::tool
