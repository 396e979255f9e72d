// Which connections a server has room for.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace ooc::servers {

/// Open sessions among `sessions`.
template <class Session>
std::size_t open_sessions(const std::vector<std::shared_ptr<Session>>& sessions) {
  std::size_t n = 0;
  for (const auto& s : sessions) n += !s->closed();
  return n;
}

/// True where another session may be added to fewer than `limit` open ones.  The first peer that
/// has not said who it is gives way, so that strangers keep nobody out.
template <class Session>
bool make_room(const std::vector<std::shared_ptr<Session>>& sessions, std::size_t limit) {
  if (open_sessions(sessions) < limit) return true;
  for (const auto& s : sessions) {
    if (s->closed() || s->welcomed()) continue;
    s->close();
    return true;
  }
  return false;
}

}  // namespace ooc::servers
