// Two hosts on one machine: network name spaces, joined by a link whose speed is limited both ways.
//
// A process is on a host as far as sockets that it makes are; connections that are there stay where
// they were made.  The calling thread alone changes hosts, so call from a process with one thread; the
// threads and processes that it makes later are on its host.  Needs root, `ip` and `tc`.
#pragma once

#include <string>

#include "storage/base/file_descriptor.hpp"

namespace bench {

class shaped_link {
 public:
  /// `mbit` Mbit/s in each direction.  Throws std::runtime_error with the reason where this machine
  /// cannot have it.  It ends with the last process on its hosts.
  explicit shaped_link(unsigned mbit);

  enum class host { home, server, client };  ///< home: where the process was before
  void enter(host h) const;

  const std::string& server_address() const noexcept { return server_address_; }

 private:
  std::string server_address_ = "10.77.0.1";
  ooc::storage::file_descriptor home_, server_, client_;
};

}  // namespace bench
