// Which connections a server takes, whom they are counted for, and what its log says of their ends.
#pragma once

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "daemon/fair_share.hpp"
#include "storage/wire/frame_stream.hpp"
#include "storage/wire/greeting.hpp"
#include "storage/wire/handshake.hpp"

namespace ooc::servers {

/// Whom what comes on a connection is counted for.  The user: over a Unix socket the one that the kernel
/// names; else, with a cluster key, the one that the holder of the key says it acts for; else the address
/// of the peer, as nothing better is known.  Within that, the client process of the handshake.
client_number number_of(const wire::stream_socket& s, const wire::hello_info& peer, bool keyed);

/// Over a Unix socket the kernel knows who is there and in which groups, and only root may act for others; the key
/// that a peer has proven vouches for its group.  Throws connection_refused where the peer says otherwise.
void check_user(const wire::stream_socket& s, const wire::greeted_peer& peer);

/// A client may be dropped for another one when it has asked nothing for so long.
inline constexpr std::chrono::seconds idle_limit{5};

/// Open sessions among `sessions`.
template <class Session>
std::size_t open_sessions(const std::vector<std::shared_ptr<Session>>& sessions) {
  std::size_t n = 0;
  for (const auto& s : sessions) n += !s->closed();
  return n;
}

/// Whether another session may be added, and which one gives way to it.
template <class Session>
struct admitted {
  bool in = false;
  std::shared_ptr<Session> out;  ///< to be closed by who asked, without a lock; often none
};

/// Another session may be added to fewer than `limit` open ones, of which `share` counts those that have
/// said who they are.  Else one gives way to it: the first peer that has not said who it is; where there
/// is none, of those who have asked nothing for a while, or have more connections than their share and
/// ask nothing now, one of the user and process with the most.
template <class Session>
admitted<Session> make_room(const std::vector<std::shared_ptr<Session>>& sessions, std::size_t limit,
                            const fair_share& share, std::chrono::steady_clock::time_point now) {
  if (open_sessions(sessions) < limit) return {true, {}};
  std::unordered_map<std::uint64_t, std::size_t> users, processes;
  for (const auto& s : sessions) {
    if (s->closed()) continue;
    if (!s->welcomed()) return {true, s};
    ++users[s->number_in_shares().user];
    ++processes[s->number_in_shares().process];
  }
  std::shared_ptr<Session> found;
  std::tuple<std::size_t, std::size_t, std::chrono::steady_clock::duration> most{};
  for (const auto& s : sessions) {
    if (s->closed() || !s->may_give_way()) continue;
    const client_number who = s->number_in_shares();
    const auto idle = now - s->heard();
    if (idle < idle_limit && (processes[who.process] < 2 || !share.above_share(who))) continue;
    const std::tuple weight{users[who.user], processes[who.process], idle};
    if (found && weight <= most) continue;
    found = s;
    most = weight;
  }
  if (found)
    spdlog::info("{} ({}): dropped, it has asked nothing for {} s and others want to connect", found->peer(),
                 found->client().name, std::chrono::duration_cast<std::chrono::seconds>(now - found->heard()).count());
  return {found != nullptr, found};
}

/// Adds the session where there is room for it.
template <class Session>
admitted<Session> admit(std::vector<std::shared_ptr<Session>>& sessions, const std::shared_ptr<Session>& s,
                        std::size_t limit, const fair_share& share) {
  auto room = make_room(sessions, limit, share, std::chrono::steady_clock::now());
  if (room.in)
    sessions.push_back(s);
  else
    spdlog::warn("{}: refused, there are {} clients already (--max-connections)", s->peer(), limit);
  return room;
}

/// The place of a client that has said who it is.  Throws connection_error where it has its share.
fair_share::claim welcome_to(fair_share& connections, client_number who);

/// `why` is empty for an orderly end, which no one needs to know of.
template <class Session>
void log_end(const Session& s, const std::string& why) {
  if (!why.empty()) spdlog::warn("{} ({}): {}", s.peer(), s.welcomed() ? s.client().name : "not welcomed", why);
}

}  // namespace ooc::servers
