// The servers of a store, started and stopped by the `ooc` command, for the time of a test.
#pragma once

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "support/run_command.hpp"

namespace ooc::testing {

/// A port of this machine that nobody had a moment ago.
inline std::string free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof a;
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&a), n) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&a), &n) == 0);
  ::close(fd);
  return std::to_string(ntohs(a.sin_port));
}

/// Everything lies below `dir`.  The destructor continues what was stopped by a signal, and stops
/// all.
class servers {
 public:
  servers(fs::path dir, unsigned nodes, const std::string& options = "") : dir_(std::move(dir)) {
    const outcome o = ooc("up --port 0 --nodes " + std::to_string(nodes) + " " + options);
    INFO(o.err << logs());
    REQUIRE(o.status == 0);
    url_ = last_line(o.out);
    nodes_ = nodes;
  }
  ~servers() {
    send("metad", SIGCONT);
    for (unsigned i = 0; i < nodes_; ++i) send("iod-" + std::to_string(i), SIGCONT);
    ooc("down");
  }
  servers(const servers&) = delete;
  servers& operator=(const servers&) = delete;

  const std::string& url() const { return url_; }
  const fs::path& dir() const { return dir_; }

  /// Starts again what does not run.
  outcome up(const std::string& options = "") { return ooc("up " + options); }
  outcome down(const std::string& options = "") { return ooc("down " + options); }

  /// 0: it was never started.
  pid_t pid(const std::string& name) const {
    std::ifstream in(dir_ / "run" / (name + ".pid"));
    pid_t p = 0;
    in >> p;
    return p;
  }
  /// False where there is no such process.
  bool send(const std::string& name, int signal) const {
    const pid_t p = pid(name);
    return p > 0 && ::kill(p, signal) == 0;
  }
  std::string logs() const {
    std::string text;
    std::error_code ec;
    for (const auto& e : fs::directory_iterator(dir_ / "log", ec))
      text += "\n--- " + e.path().filename().string() + "\n" + contents(e.path());
    return text;
  }

  static std::string last_line(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text.substr(text.find_last_of('\n') + 1);
  }

 private:
  outcome ooc(const std::string& arguments) const {
    return run_command(OOC_COMMAND " " + arguments + " --dir " + dir_.string(), dir_.string());
  }

  fs::path dir_;
  std::string url_;
  unsigned nodes_ = 0;
};

}  // namespace ooc::testing
