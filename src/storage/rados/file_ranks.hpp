// The ranks that write a file under the claim of their rank 0: attributes of the file's object, by which they can be
// shut out.
//
//     a rank joins                 it says where it is and under which claim it writes; then it looks whether the client
//                                  that holds the claim is there (client_object.hpp)
//     a rank leaves                it takes that away
//     somebody claims the file     those that are still there under a claim that ends with that are shut out
//
// So no rank writes behind the next owner, whether rank 0 was lost or has let go of the claim by itself.
//
// All calls wait, and throw io_error.  Threads: any.
#pragma once

#include <memory>
#include <string>

#include "storage/layout/file_shape.hpp"
#include "storage/rados/rados_pool.hpp"

namespace ooc::storage {

/// The client of a store, as a rank of others.
struct rank_of_file {
  std::shared_ptr<rados_pool> clients;  ///< the pool of the objects of clients
  std::shared_ptr<rados_pool> files;    ///< that of files
  std::string number;                   ///< its own
};

/// While the pointer lives, who ends `claim` of `claimant` shuts out this process.  ESTALE where `claimant` has ended.
std::shared_ptr<void> join_file(const rank_of_file& rank, const std::string& claimant, file_id id,
                                const write_claim& claim);

/// By who advances the file: those whose claims end with that of `f` have left, or are shut out.
void end_ranks(rados_pool& files, const file_shape& f);

}  // namespace ooc::storage
