// The bytes of a file with commits that may differ between two of them, in the order of the file.
//
// A value; no locks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oocarray/striping.hpp"
#include "storage/service/io_service.hpp"

namespace ooc::storage {

class changed_bytes {
 public:
  /// `on_nodes`: by stripe index, from striped_file::find_changes(), of a file of `size` bytes.
  changed_bytes(const striping& s, std::uint64_t size, std::vector<std::vector<byte_interval>> on_nodes);

  /// The first at or behind `from`, with all that follows it without a gap, up to `most` bytes.
  std::optional<byte_interval> next(std::uint64_t from, std::uint64_t most) const;

 private:
  /// As above, within one stripe.
  std::optional<byte_interval> piece(std::uint64_t from) const;

  striping striping_;
  std::uint64_t size_;
  std::vector<std::vector<byte_interval>> on_nodes_;
};

}  // namespace ooc::storage
