// Which connections a server takes, and what its log says of their ends.
#pragma once

#include <spdlog/spdlog.h>

#include <cstddef>
#include <memory>
#include <string>
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

/// Adds the session where there is room for it.
template <class Session>
bool admit(std::vector<std::shared_ptr<Session>>& sessions, const std::shared_ptr<Session>& s,
           std::size_t limit) {
  if (!make_room(sessions, limit)) {
    spdlog::warn("{}: refused, there are {} clients already (--max-connections)", s->peer(), limit);
    return false;
  }
  sessions.push_back(s);
  return true;
}

/// `why` is empty for an orderly end, which no one needs to know of.
template <class Session>
void log_end(const Session& s, const std::string& why) {
  if (!why.empty())
    spdlog::warn("{} ({}): {}", s.peer(), s.welcomed() ? s.client().name : "not welcomed", why);
}

}  // namespace ooc::servers
