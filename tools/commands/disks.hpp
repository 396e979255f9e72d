// The disks under the nodes of a store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oocarray/store.hpp"

namespace ooc::tool {

/// The file system under one node.
struct disk {
  std::string name;
  std::uint64_t bytes = 0, free = 0;
  std::string where;     ///< which disk of which host it is, for who adds them up
  std::string why;       ///< where it could not be asked
  bool retired = false;  ///< nothing is there, and nobody needs to ask it
};

/// Asks the servers of a store; `key`: file with the key, empty: the usual one.
std::vector<disk> served_disks(const std::string& url, const std::string& key);
/// Those that this process knows itself.
std::vector<disk> own_disks(const ooc::store& store);

struct disk_sum {
  std::uint64_t bytes = 0, free = 0;
  bool complete = true;  ///< all could be asked
};
/// A disk that several nodes share counts once.
disk_sum sum_of(const std::vector<disk>& all);

}  // namespace ooc::tool
