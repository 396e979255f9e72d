// What a client knows of a server's epoch, and what of a file hangs on it.
//
// The epoch of a server is a number that changes when what it had acknowledged may have been lost: when its machine
// went down before that was durable (docs/wire-format.md, "Epochs").  What a process of several has written another
// one may make durable.  It then compares the epoch that it did that in with those of the others.
#pragma once

#include <cstdint>
#include <string>

#include "oocarray/error.hpp"

namespace ooc::storage {

struct known_epoch {
  std::uint64_t now = 0;  ///< of the server that has answered last; 0: not known, or nothing is ever lost there
  /// The epoch in which changes of the file were acknowledged here that have not been made durable since; 0: none.
  std::uint64_t unsynced_in = 0;
  failure lost;  ///< changes of the file that the opening may have seen may have been lost
};

/// Why a call, "the read of 'plate/a'", is refused where the machine of this server has lost its power.
inline failure lost_with_power(const std::string& server, const std::string& call) {
  return {std::make_error_code(std::errc::io_error),
          call + ": the machine of " + server +
              " has lost its power since this program changed the file, and what was acknowledged there and not "
              "durable may be lost: open the file again"};
}

}  // namespace ooc::storage
