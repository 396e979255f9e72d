// Where a transferred file comes from: this host's disk, the store, or a bare server on another
// host.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace papers {

/// A file to copy from.
class source {
 public:
  static constexpr std::size_t chunk = 256 * 1024;  ///< bytes of a read, at most

  virtual ~source() = default;
  /// Reads exactly these bytes; any threads.  Throws std::exception.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) = 0;
};

std::unique_ptr<source> local_source(const std::string& path);
std::unique_ptr<source> store_source(const std::string& url, const std::string& path);
/// A connection to each "ADDRESS:PORT"; chunks of the file take turns over them.
std::unique_ptr<source> bare_source(const std::vector<std::string>& addresses);

/// Serves the file to bare_source() at every "ADDRESS:PORT" until standard input ends.
[[noreturn]] void serve_file(const std::string& path, const std::vector<std::string>& addresses);

}  // namespace papers
