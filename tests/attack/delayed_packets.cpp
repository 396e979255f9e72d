// A network that holds packets back: connections whose bytes reach the server long after their
// client has given them up and come again on another.  What they carry must not be done any more.
//
// Servers and client are on the loopback of two network name spaces; between them is a relay that
// listens at the servers' own addresses in the client's.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <list>
#include <optional>

#include "attack/history.hpp"
#include "attack/served_store.hpp"
#include "storage/base/file_descriptor.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using storage::file_descriptor;

file_descriptor this_network() { return file_descriptor(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)); }
void enter(const file_descriptor& network) {
  if (::setns(network.get(), CLONE_NEWNET) != 0) throw std::system_error(errno, std::generic_category(), "setns");
}
/// A new network name space with a loopback; this process is in it then.
file_descriptor new_network() {
  if (::unshare(CLONE_NEWNET) != 0)
    throw finding(verdict::not_run, "no network name space: " + std::generic_category().message(errno));
  if (run_command({"ip", "link", "set", "lo", "up"}).status != 0)
    throw finding(verdict::not_run, "no loopback in a network name space");
  return this_network();
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

/// Passes bytes on, a process of its own with one thread.
class relay {
 public:
  relay(const file_descriptor& servers, const file_descriptor& client) : servers_(servers), client_(client) {}

  void listen(std::uint16_t port) {
    enter(client_);
    file_descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_in a = loopback(port);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0 || ::listen(fd.get(), 100) != 0)
      throw std::system_error(errno, std::generic_category(), "the relay cannot listen");
    ports_.push_back({std::move(fd), port});
  }

  /// Until it is killed.  Every now and then, all connections to the I/O servers that there are
  /// lose their clients after some more bytes, which are kept and passed on later.
  [[noreturn]] void run(round& r) {
    auto next = clock::now() + milliseconds(r.between(100, 600));
    for (;;) {
      wait();
      accept_new();
      for (auto& l : links_) pass(l);
      links_.remove_if([](const link& l) { return l.over; });
      if (clock::now() < next) continue;
      const milliseconds late(r.between(20, 800));
      for (auto& l : links_)
        if (l.port != ports_.front().second && !l.deaf_since) {
          l.deaf_since = clock::now();
          l.deaf_for = milliseconds(r.between(2, 60));
          l.late = late;
        }
      next = clock::now() + milliseconds(r.between(300, 1500));
    }
  }

 private:
  struct link {
    file_descriptor client, server;
    std::uint16_t port;
    std::string up, down;                         ///< bytes on their way to the server, to the client
    std::optional<clock::time_point> deaf_since;  ///< nothing is passed on from here on ...
    milliseconds deaf_for{0};                     ///< ... the client is dropped after so long ...
    milliseconds late{0};                         ///< ... and the server gets its bytes so long after that
    bool over = false;
  };

  void wait() {
    std::vector<pollfd> all;
    for (const auto& p : ports_) all.push_back({p.first.get(), POLLIN, 0});
    for (const link& l : links_) {
      if (l.client.get() >= 0 && l.up.size() < most) all.push_back({l.client.get(), POLLIN, 0});
      if (!l.deaf_since) all.push_back({l.server.get(), POLLIN, 0});
    }
    ::poll(all.data(), all.size(), 2);
  }
  void accept_new() {
    for (const auto& [listener, port] : ports_) {
      const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) continue;
      file_descriptor from(fd);
      enter(servers_);
      file_descriptor to(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in a = loopback(port);
      if (::connect(to.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0) continue;
      ::fcntl(to.get(), F_SETFL, O_NONBLOCK);
      links_.push_back({std::move(from), std::move(to), port, {}, {}, {}, {}, {}, false});
    }
  }
  /// False at the end.
  static bool take(const file_descriptor& fd, std::string& into) {
    char bytes[1 << 16];
    while (into.size() < most) {
      const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, 0);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
      if (n < 0) return true;
      into.append(bytes, static_cast<std::size_t>(n));
    }
    return true;
  }
  static bool give(const file_descriptor& fd, std::string& from) {
    while (!from.empty()) {
      const ssize_t n = ::send(fd.get(), from.data(), from.size(), MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN;
      from.erase(0, static_cast<std::size_t>(n));
    }
    return true;
  }
  void pass(link& l) {
    if (!l.deaf_since) {
      l.over = !take(l.client, l.up) || !take(l.server, l.down) || !give(l.server, l.up) || !give(l.client, l.down);
      return;
    }
    const auto deaf = clock::now() - *l.deaf_since;
    if (l.client.get() >= 0) {
      if (!take(l.client, l.up) || deaf > l.deaf_for) l.client = file_descriptor();
      return;
    }
    if (deaf < l.deaf_for + l.late) return;
    l.over = !give(l.server, l.up) || l.up.empty();
  }

  static constexpr std::size_t most = 8 << 20;
  const file_descriptor &servers_, &client_;
  std::vector<std::pair<file_descriptor, std::uint16_t>> ports_;  ///< the metadata server's first
  std::list<link> links_;
};

std::uint16_t port_after(const std::string& text, const std::string& word) {
  const auto at = text.find(word);
  if (at == std::string::npos) throw finding(verdict::failed, "no " + word + " in " + text);
  return static_cast<std::uint16_t>(std::stoi(text.substr(text.find(':', at + word.size()) + 1)));
}

}  // namespace

void delayed_packets(round& r) {
  const file_descriptor here = this_network();
  const file_descriptor servers_side = new_network();
  const std::uint64_t nodes = r.between(1, 2);
  const auto dir = r.folder() / "store";
  served_store servers(dir, nodes);
  std::vector<std::uint16_t> ports{port_after(servers.url(), "ooc://")};
  for (std::uint64_t n = 0; n < nodes; ++n) {
    std::ifstream in(dir / "log" / ("iod-" + std::to_string(n) + ".log"));
    const std::string log{std::istreambuf_iterator<char>(in), {}};
    ports.push_back(port_after(log, "listening on "));
  }
  const file_descriptor client_side = new_network();
  relay between(servers_side, client_side);
  for (const std::uint16_t p : ports) between.listen(p);
  const pid_t relaying = r.in_child([&]() -> int { between.run(r); });

  enter(client_side);
  const history h(r.dice()(), r.between(1000, 40'000), 400, false);
  writer_options o = draw_writer(r, servers.url(), nodes);
  report_pipe told;
  const pid_t writer = r.in_child([&] {
    write_history(h, o, told, r.counts());
    return 0;
  });
  told.writer_started();
  told.wait_for(h.epochs(), milliseconds(r.between(2000, 6000)));
  ::kill(writer, SIGKILL);
  r.wait_for(writer);
  const std::uint64_t kept = told.last();
  std::cout << kept << " epochs" << std::endl;
  // What was held back arrives now, if it ever does; only the server could tell that it has.
  testing::let_pass(milliseconds(1000));
  ::kill(relaying, SIGKILL);
  r.wait_for(relaying);
  if (kept == 0) return;

  enter(servers_side);
  const pid_t checker = r.in_child([&] {
    check_history(h, o, {kept, kept + 1, true}, r);
    return 0;
  });
  if (const int s = r.wait_for(checker, std::chrono::seconds(60), "the checker"))
    throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
  enter(here);
}

}  // namespace ooc::attack
