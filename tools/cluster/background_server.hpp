// A server of this machine that runs in the background, and how it is found again.
//
// The server `name` of the folder `dir` works in dir/name, writes its log to dir/log/name.log, and
// is known by dir/run/name.pid: its process id and the time the process was started at, so that
// another process that has got the same id is never taken for it.
//
// Not thread-safe.  Failures throw ooc::error with the server's name and the place of its log.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ooc::cluster {

class background_server {
 public:
  background_server(std::filesystem::path dir, std::string name);

  const std::string& name() const noexcept { return name_; }
  std::filesystem::path folder() const { return dir_ / name_; }
  std::filesystem::path log() const { return dir_ / "log" / (name_ + ".log"); }

  /// The process that serves now, if there is one.
  std::optional<pid_t> running() const;
  /// Starts `program` with `arguments` in a session of its own, with its output in the log. Returns
  /// when it runs, which does not mean that it serves yet.
  void start(const std::filesystem::path& program, const std::vector<std::string>& arguments);
  /// After start(): waits until it says in its log that it listens.  False where it has not at `deadline`; throws as
  /// fail_ended() does where it has ended.
  bool wait_listening(std::chrono::steady_clock::time_point deadline) const;
  /// Whether its log has this text, in one line, since start(); before it was ever started by this object, at any time.
  bool has_said(const std::string& text) const;
  /// The last lines of its log.
  std::string log_end() const;
  /// That the server has ended, with the last lines of its log.
  std::string ended() const;
  /// Throws that.
  [[noreturn]] void fail_ended() const;
  /// Asks it to stop (SIGTERM).  False where it does not run.
  bool ask_to_stop() const;
  /// Waits until it has ended and forgets it; throws io_error (ETIMEDOUT) where it has not at
  /// `deadline`.
  void wait_stopped(std::chrono::steady_clock::time_point deadline) const;

 private:
  void write_down(pid_t pid) const;
  std::filesystem::path pid_file() const { return dir_ / "run" / (name_ + ".pid"); }

  std::filesystem::path dir_;
  std::string name_;
  std::uintmax_t log_before_ = 0;  // bytes of the log when it was started
};

}  // namespace ooc::cluster
