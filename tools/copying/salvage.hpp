// Reading what is left of a file whose disk or checksums are damaged (`--salvage VALUE`): what cannot be read gets a
// value, and is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/command.hpp"
#include "oocarray/error.hpp"
#include "storage/service/entry.hpp"

namespace ooc::tool {

void add_salvage_option(command_line& line);

/// Of one file; one thread at a time.
class salvage {
 public:
  /// Reads elements [begin, end) of a row to `out`; a failure leaves nothing said about `out`.
  using read_elements = std::function<failure(std::uint64_t begin, std::uint64_t end, std::byte* out)>;

  /// `value`: as on the command line; throws usage_mistake where it is none of the array's element type.  For plain
  /// files, structures, long doubles and types with names of their own it is a byte, which all their bytes get.
  salvage(const std::string& value, const storage::entry& file);
  /// As --salvage says; nothing where it was not given.
  static std::optional<salvage> of(const command_line& line, const storage::entry& file);

  std::uint64_t element_size() const noexcept { return element_.size(); }

  /// Fills `out` with the elements from `begin` on, as far as they can be read, and the others with the value.
  /// `tile`: elements lie together in the file from one multiple of it to the next; 0: all do.  `number`: of the
  /// element `begin`, for report().
  void read(std::uint64_t begin, std::uint64_t end, std::uint64_t tile, std::uint64_t number, std::byte* out,
            const read_elements& read);

  bool lost_any() const noexcept { return lost_ != 0; }
  /// "'a': 512 elements (4096 bytes) cannot be read and are nan: elements 512-1023 (<why>)".
  std::string report(const std::string& path) const;

 private:
  struct range {
    std::uint64_t begin, end;
  };
  void lose(range r, std::byte* out);

  std::string value_;
  std::vector<std::byte> element_;
  std::uint64_t together_;  ///< so many elements that lie together in the file share at most two checksums
  std::uint64_t lost_ = 0;
  std::vector<range> first_;  // of what is lost, as many as report() names
  std::uint64_t more_ = 0;    // ranges beyond those
  std::uint64_t last_end_ = 0;
  std::string why_;
};

}  // namespace ooc::tool
