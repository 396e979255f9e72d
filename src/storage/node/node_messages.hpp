// The words for what went wrong on a node: what was done to which file where, why not, and what helps.
//
// A base of node_operations.  Any thread may call it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "storage/node/operation.hpp"
#include "storage/object/io_worker.hpp"
#include "storage/object/node_folder.hpp"

namespace ooc::storage {

class node_messages {
 protected:
  explicit node_messages(std::filesystem::path folder) : folder_(std::move(folder)) {}

  failure failed(const operation& op, int error, const std::string& more = "");
  failure failed(const operation& op, const object_error& e);
  failure refused(const operation& op, const std::string& why);
  failure damaged(const operation& op, const std::string& why);
  /// The failure of who claims to write the file, and has lost that claim.  `h`: the header, read under the locks.
  failure lost_claim(const operation& op, const checksum_header& h);
  /// Of who does not know that the file has been made shorter.
  failure was_cut_off(const operation& op);
  failure was_moved(const operation& op);
  /// Of who would make a stripe object shorter and does not know of its `generation`.
  failure is_late(const operation& op, std::uint64_t generation);
  std::string chunk_text(const operation& op, const bad_chunk& c);

  const node_folder folder_;
};

}  // namespace ooc::storage
