// The store that tests run on: OOC_TEST_STORE names one that is theirs alone, otherwise each makes
// its own.  This is how a suite runs over servers too (tests/servers/on_servers.sh).
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::testing {

/// Removes everything from a folder of a store.
inline void remove_all(storage::store_core& core, const std::string& path) {
  for (const auto& e : core.metadata().list(path)) {
    if (e.kind == storage::entry_kind::folder) remove_all(core, e.path);
    core.remove(e.path);
  }
}

/// The store of OOC_TEST_STORE, empty; nothing where that is not set.
inline std::optional<ooc::store> store_from_environment() {
  const char* url = std::getenv("OOC_TEST_STORE");
  if (url == nullptr) return {};
  ooc::store s = ooc::store::open(url);
  remove_all(*s.core(), "");
  return s;
}

}  // namespace ooc::testing
