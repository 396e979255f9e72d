// A metadata server whose database is in RADOS: one at a time, the others wait to take its place.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "metad/metad_server.hpp"

namespace ooc::metad {

class rados_home {
 public:
  virtual ~rados_home() = default;
  /// Clients find the server there from now on.
  virtual void publish(const std::vector<std::string>& addresses) const = 0;
};

/// Waits until no other process has the metadata of the store at `url`, making the store where there is none, and calls
/// `start` with `options` completed; only then may another process try.  `lost` is called, on a thread of its own, once
/// another has it all the same, as this one was stopped.  The result goes before the server, which no client reaches
/// any more then.  Throws usage_error where there can be no such store.
std::unique_ptr<rados_home> serve_from_rados(const std::string& url, metad_options options,
                                             const std::function<void(const metad_options&)>& start,
                                             std::function<void(const std::string& why)> lost);

}  // namespace ooc::metad
