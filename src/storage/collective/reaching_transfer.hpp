// A collective transfer of a plain file that other programs may cut off meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "storage/collective/collective_transfer.hpp"
#include "storage/service/growing_file.hpp"

namespace ooc::storage {

/// A collective call, as far as all ranks know it.
struct joint_request {
  std::vector<request> wanted;                                     ///< by rank
  locality nodes = locality::none;                                 ///< the farthest one, of any rank
  std::uint64_t size = std::numeric_limits<std::uint64_t>::max();  ///< of the file, the smallest that a rank has seen

  std::uint64_t end() const;
};

/// Collective: each rank's request, which `mine` returns there.
joint_request gather(process_group& group, const std::string& call, const growing_file& file,
                     const std::function<request()>& mine);

/// Collective over t.group: as transfer_collectively(), of the requests of `all`, `how` the ranks choose together.
/// Writes make the file longer first, and again where another program cuts it off before they are done.  Throws
/// usage_error (errc::invalid_request) on all ranks where it is too short to be read, or an array.
void transfer_reaching(const collective_transfer& t, const joint_request& all, growing_file& file,
                       const std::function<strategy(const striped_file&)>& how);

}  // namespace ooc::storage
