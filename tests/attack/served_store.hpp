// A store on servers of this machine, started by `ooc up`.  The driver ends what the round leaves.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "attack/round.hpp"

namespace ooc::attack {

class served_store {
 public:
  served_store(std::filesystem::path dir, std::uint64_t nodes, const std::vector<std::string>& options = {})
      : dir_(std::move(dir)), nodes_(nodes) {
    std::vector<std::string> more{"--port", "0", "--nodes", std::to_string(nodes)};
    more.insert(more.end(), options.begin(), options.end());
    up(more);
  }

  /// Starts what does not run.
  void up(const std::vector<std::string>& options = {}) {
    if (const command_result r = try_up(options); r.status != 0) throw finding(verdict::failed, "ooc up: " + r.output);
  }
  /// The same where it may be refused.
  command_result try_up(const std::vector<std::string>& options = {}) {
    std::vector<std::string> words{OOC_COMMAND, "up", "--dir", dir_.string()};
    words.insert(words.end(), options.begin(), options.end());
    const command_result r = run_command(words);
    if (r.status != 0) return r;
    std::string text = r.output;
    while (text.ends_with('\n')) text.pop_back();
    url_ = text.substr(text.find_last_of('\n') + 1);
    return r;
  }
  void down() { run_command({OOC_COMMAND, "down", "--dir", dir_.string()}); }

  const std::string& url() const noexcept { return url_; }
  /// "metad", "iod-0", "iod-1", ...
  std::string any_server(round& r) const {
    const std::uint64_t n = r.between(0, nodes_);
    return n == nodes_ ? "metad" : "iod-" + std::to_string(n);
  }
  pid_t pid(const std::string& name) const {
    std::ifstream in(dir_ / "run" / (name + ".pid"));
    pid_t p = 0;
    in >> p;
    return p;
  }
  void send(const std::string& name, int signal) const {
    if (const pid_t p = pid(name); p > 0) ::kill(p, signal);
  }
  /// Resident bytes of a server.
  std::uint64_t memory(const std::string& name) const {
    std::ifstream in("/proc/" + std::to_string(pid(name)) + "/statm");
    std::uint64_t total = 0, resident = 0;
    in >> total >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }

 private:
  std::filesystem::path dir_;
  std::uint64_t nodes_;
  std::string url_;
};

}  // namespace ooc::attack
