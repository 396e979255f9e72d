// Whom a server believes what a peer says of its user and groups, over a Unix socket.
#include "daemon/admission.hpp"

#include <grp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "storage/base/file_descriptor.hpp"
#include "support/other_user.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr gid_t own_group = 2000, further_group = 2001;

/// The server's end of a connection of `uid`, who is in the two groups.
struct connection {
  explicit connection(uid_t uid) {
    const int n = ::getgroups(0, nullptr);
    std::vector<gid_t> before(static_cast<std::size_t>(n));
    REQUIRE(::getgroups(n, before.data()) == n);
    const gid_t group = ::getegid();
    int ends[2];
    REQUIRE(::setgroups(1, &further_group) == 0);
    REQUIRE(::setegid(own_group) == 0);
    REQUIRE(::seteuid(uid) == 0);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    REQUIRE(::seteuid(0) == 0);
    REQUIRE(::setegid(group) == 0);
    REQUIRE(::setgroups(before.size(), before.data()) == 0);
    other_end = storage::file_descriptor(ends[1]);
    socket.assign(boost::asio::local::stream_protocol(), ends[0]);
  }

  std::string refusal(storage::credentials claimed, const std::string& identity = {}) const {
    wire::greeted_peer peer;
    peer.says.who = std::move(claimed);
    peer.identity = identity;
    try {
      servers::check_user(socket, peer);
    } catch (const wire::connection_refused& e) {
      return e.what();
    }
    return {};
  }

  boost::asio::io_context context;
  wire::stream_socket socket{context};
  storage::file_descriptor other_end;
};

/// What `what` returns in a process of a pid namespace of its own, which does not know this one.
bool among_other_pids(const std::function<bool()>& what) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(2);
    const pid_t first = ::fork();
    if (first == 0) ::_exit(what() ? 0 : 1);
    int status = 0;
    ::waitpid(first, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("over a Unix socket a program is believed to be in its own groups only, and root anything") {
  if (!can_be_others()) return;
  const connection c(stranger);
  CHECK(c.refusal({stranger, own_group}).empty());
  CHECK(c.refusal({stranger, further_group}).empty());
  CHECK_THAT(c.refusal({stranger, 0}), Catch::Contains("group 0") && Catch::Contains("`id`"));
  CHECK_THAT(c.refusal({0, own_group}), Catch::Contains("claims to be user 0"));
  CHECK(c.refusal({stranger, 0}, "an identity that vouches for it").empty());
  CHECK(connection(0).refusal({stranger, 27}).empty());
}

TEST_CASE("a program in another pid namespace is believed no more than others") {
  if (!can_be_others()) return;
  const connection c(stranger);
  CHECK(among_other_pids([&] { return c.refusal({stranger, own_group}).empty(); }));
  CHECK(among_other_pids([&] { return !c.refusal({0, own_group}).empty(); }));
  CHECK(among_other_pids([&] { return !c.refusal({stranger, 0}).empty(); }));
  const auto number = servers::number_of(c.socket, {}, false);
  CHECK(among_other_pids([&] { return servers::number_of(c.socket, {}, false).user == number.user; }));
}
