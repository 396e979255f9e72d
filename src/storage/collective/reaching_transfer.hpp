// A collective transfer of a plain file that other programs may cut off meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "storage/collective/collective_transfer.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// What a rank does about its file.
struct file_of_rank {
  /// Makes the file long enough for a write; one rank does.  `refused`: the file as which a write was refused
  /// (errc::cut_off), or nullptr.  `anew`: it is shorter than this rank has seen it.
  std::function<void(const opened_file* refused, bool anew)> grow;
  /// The file as this rank knows it, if it may reach the end of the transfer; `anew`, or else: as the metadata have it.
  std::function<std::shared_ptr<const opened_file>(bool anew)> look;
  /// How to transfer it; may be collective.
  std::function<strategy(const striped_file& file)> how;
};

/// Collective over t.group: as transfer_collectively(), up to byte `end` of a file of which a rank has seen `shortest`
/// bytes and the others no fewer.  Writes make it longer first, and again where another program cuts it off before they are
/// done.  Throws usage_error (errc::invalid_request) on all ranks where it is too short to be read, or an array.
void transfer_reaching(const collective_transfer& t, std::uint64_t end, std::uint64_t shortest, const file_of_rank& file);

}  // namespace ooc::storage
