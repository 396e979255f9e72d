// A server's own program, run by a test: on a port that the system chose, with its log in a file.
//
// A test that fails shows the logs (print_log, called by the destructor while an exception is on
// its way, and by tests).
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/soon.hpp"

namespace ooc::testing {

class server_process {
 public:
  /// `log` is appended to; `arguments` without --listen.
  server_process(std::string program, std::vector<std::string> arguments, std::filesystem::path log)
      : program_(std::move(program)), arguments_(std::move(arguments)), log_(std::move(log)) {
    start();
  }
  ~server_process() {
    if (pid_ > 0) {
      resume();
      stop();
    }
    if (std::uncaught_exceptions() != 0) print_log();
  }
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;

  /// "127.0.0.1:port"; the same after a restart.
  const std::string& address() const noexcept { return address_; }
  pid_t pid() const noexcept { return pid_; }

  /// As a crash would end it.
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  /// SIGTERM; returns its exit status.
  int stop() {
    ::kill(pid_, SIGTERM);
    return wait();
  }
  /// It ends by itself; returns its exit status.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void start() {
    const auto before = log().size();
    const std::string listen = address_.empty() ? "127.0.0.1:0" : address_;
    std::vector<std::string> all{program_, "--listen", listen, "--log-file", log_.string()};
    all.insert(all.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> argv;
    for (std::string& a : all) argv.push_back(a.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    wait_until_listening(before);
  }
  void restart() {
    kill();
    start();
  }
  void pause() { ::kill(pid_, SIGSTOP); }
  void resume() { ::kill(pid_, SIGCONT); }

  std::string log() const {
    std::ifstream in(log_);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  bool logged(const std::string& what) const { return log().find(what) != std::string::npos; }
  void print_log() const { std::cout << "--- " << log_ << "\n" << log() << std::flush; }

  /// Bytes of memory that it has resident.
  std::uint64_t memory() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/statm");
    std::uint64_t total = 0, resident = 0;
    in >> total >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }

 private:
  void wait_until_listening(std::size_t log_before) {
    const std::string words = "listening on ";
    bool listening = false;
    soon([&] {
      const std::string text = log().substr(log_before);
      if (const auto at = text.find(words); at != text.npos)
        if (const auto end = text.find('\n', at); end != text.npos) {
          address_ = text.substr(at + words.size(), end - at - words.size());
          return listening = true;
        }
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
      pid_ = -1;  // it has ended
      return true;
    });
    if (listening) return;
    print_log();
    throw std::runtime_error(program_ + " did not start");
  }

  std::string program_;
  std::vector<std::string> arguments_;
  std::filesystem::path log_;
  std::string address_;
  pid_t pid_ = -1;
};

}  // namespace ooc::testing
