#include "daemon/admission.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <vector>

namespace ooc::servers {

namespace {

/// As the kernel knows the peer of a Unix socket, also one in another pid namespace, whose pid it gives as 0.
std::optional<ucred> known_peer(const wire::stream_socket& s) {
  ucred known{};
  socklen_t size = sizeof known;
  const int fd = const_cast<wire::stream_socket&>(s).native_handle();
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &known, &size) != 0) return {};
  if (known.uid == static_cast<uid_t>(-1)) return {};  // of a network socket
  return known;
}

bool peer_is_in(const wire::stream_socket& s, const ucred& known, gid_t group) {
  if (known.gid == group) return true;
  const int fd = const_cast<wire::stream_socket&>(s).native_handle();
  std::vector<gid_t> groups(64);
  auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int result = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
  if (result != 0 && errno == ERANGE) {
    groups.resize(size / sizeof(gid_t));
    result = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
  }
  groups.resize(result == 0 ? size / sizeof(gid_t) : 0);
  return std::ranges::find(groups, group) != groups.end();
}

std::string user_of(const wire::stream_socket& s, const wire::hello_info& peer, bool keyed) {
  if (const auto known = known_peer(s)) return "uid " + std::to_string(known->uid);
  const int fd = const_cast<wire::stream_socket&>(s).native_handle();
  sockaddr_storage a{};
  socklen_t size = sizeof a;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&a), &size) != 0) return "gone";
  if (keyed) return "uid " + std::to_string(peer.who.uid);
  char text[INET6_ADDRSTRLEN] = "local";
  if (a.ss_family == AF_INET) ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(a).sin_addr, text, sizeof text);
  if (a.ss_family == AF_INET6) ::inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6&>(a).sin6_addr, text, sizeof text);
  return text;
}

}  // namespace

client_number number_of(const wire::stream_socket& s, const wire::hello_info& peer, bool keyed) {
  std::string text = user_of(s, peer, keyed);
  const std::uint64_t user = std::hash<std::string>()(text);
  text.append(peer.client.begin(), peer.client.end());
  return {user, std::hash<std::string>()(text)};
}

void check_user(const wire::stream_socket& s, const wire::greeted_peer& peer) {
  const auto known = known_peer(s);
  if (!known || known->uid == 0) return;
  const storage::credentials& claimed = peer.says.who;
  const auto refused = [](const std::string& why) {
    throw wire::connection_refused({EACCES, std::generic_category()}, why);
  };
  const std::string user = "user " + std::to_string(known->uid);
  if (known->uid != claimed.uid)
    refused(user + " claims to be user " + std::to_string(claimed.uid) +
            ": over a Unix socket only root acts for others; run the program as that user");
  if (peer.identity.empty() && !peer_is_in(s, *known, claimed.gid))
    refused(user + " claims to be in group " + std::to_string(claimed.gid) +
            ", and this program is not in it: its groups are those that `id` shows where it was started");
}

fair_share::claim welcome_to(fair_share& connections, client_number who) {
  auto place = connections.try_take(who, 1);
  if (!place)
    throw wire::connection_error(
        {EUSERS, std::generic_category()},
        "this client has " + std::to_string(connections.held_by(who)) + " of the " +
            std::to_string(connections.limit()) +
            " connections that there are (--max-connections), and others are to have some too");
  return place;
}

}  // namespace ooc::servers
