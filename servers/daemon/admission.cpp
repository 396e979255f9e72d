#include "daemon/admission.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <functional>

namespace ooc::servers {

namespace {

std::string user_of(const wire::stream_socket& s, const wire::hello_info& peer, bool keyed) {
  const int fd = const_cast<wire::stream_socket&>(s).native_handle();
  sockaddr_storage a{};
  socklen_t size = sizeof a;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&a), &size) != 0) return "gone";
  if (a.ss_family == AF_UNIX) {
    ucred known{};
    size = sizeof known;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &known, &size) == 0 && known.pid != 0)
      return "uid " + std::to_string(known.uid);
  }
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

void check_user(const wire::stream_socket& s, storage::credentials claimed) {
  ucred known{};
  socklen_t size = sizeof known;
  if (::getsockopt(const_cast<wire::stream_socket&>(s).native_handle(), SOL_SOCKET, SO_PEERCRED, &known, &size) != 0 ||
      known.pid == 0 || known.uid == 0)
    return;
  if (known.uid != claimed.uid)
    throw wire::connection_error(
        {EACCES, std::generic_category()},
        "user " + std::to_string(known.uid) + " claims to be user " + std::to_string(claimed.uid));
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
