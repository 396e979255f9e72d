#include "cluster/background_server.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <fstream>
#include <sstream>
#include <thread>

#include "oocarray/error.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::cluster {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using storage::file_descriptor;

namespace {

/// When a process was started, in ticks since the machine was; 0: there is none, or it has ended
/// and waits for its parent.  A process whose first thread has ended lives on while others do: until
/// then its locks and sockets are its own.
std::uint64_t start_time(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  const auto name_end = text.rfind(')');  // a program's name may hold anything
  if (name_end == text.npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  char state = 0;
  fields >> state;
  std::uint64_t threads = 0, started = 0;
  for (int field = 4; field <= 22; ++field) {
    std::int64_t value = 0;
    fields >> value;
    if (field == 20) threads = static_cast<std::uint64_t>(value);
    if (field == 22) started = static_cast<std::uint64_t>(value);
  }
  if (!fields || state == 'X' || (state == 'Z' && threads <= 1)) return 0;
  return started;
}

/// In the child: becomes a session of its own and, when it is told to go on, runs the program; not where who tells it
/// has been killed, and nobody knows of it.  Only async-signal-safe calls.
[[noreturn]] void become(const char* program, char* const* arguments, int log, int report, const int (&go_on)[2]) {
  ::close(go_on[0]);
  ::setsid();
  const auto fail = [&]() {
    const int error = errno;
    (void)!::write(report, &error, sizeof error);
    ::_exit(127);
  };
  const pid_t pid = ::fork();  // the session's leader ends: no terminal can become theirs
  if (pid < 0) fail();
  if (pid > 0) ::_exit(0);
  if (::chdir("/") != 0) fail();  // no disk is kept from being unmounted
  const int none = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (none < 0 || ::dup2(none, 0) < 0 || ::dup2(log, 1) < 0 || ::dup2(log, 2) < 0) fail();
  // The files that the caller's caller had open are no business of the server's.
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  sigset_t all;
  ::sigemptyset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const pid_t me = ::getpid();
  const int no_error = 0;
  if (::write(report, &no_error, sizeof no_error) != sizeof no_error || ::write(report, &me, sizeof me) != sizeof me)
    ::_exit(127);
  char go = 0;
  if (::read(go_on[1], &go, 1) != 1) ::_exit(127);
  ::execv(program, arguments);
  fail();
  ::_exit(127);
}

}  // namespace

background_server::background_server(fs::path dir, std::string name) : dir_(std::move(dir)), name_(std::move(name)) {}

std::optional<pid_t> background_server::running() const {
  std::ifstream in(pid_file());
  pid_t pid = 0;
  std::uint64_t started = 0;
  if (!(in >> pid >> started) || pid <= 0 || started == 0) return std::nullopt;
  if (start_time(pid) != started) return std::nullopt;
  return pid;
}

void background_server::start(const fs::path& program, const std::vector<std::string>& arguments) {
  const auto fail = [&](int error, const std::string& what) {
    throw io_error({error, std::generic_category()}, name_ + ": " + what);
  };
  for (const fs::path& f : {folder(), log().parent_path(), pid_file().parent_path()}) {
    std::error_code ec;
    fs::create_directories(f, ec);
    if (ec) fail(ec.value(), "'" + f.string() + "' cannot be made");
  }
  const file_descriptor log_file(::open(log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  std::error_code ignored;
  log_before_ = fs::file_size(log(), ignored);
  if (!log_file) fail(errno, "its log '" + log().string() + "' cannot be written");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno, "no pipe");
  const file_descriptor out(ends[0]);
  file_descriptor in(ends[1]);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) fail(errno, "no socket");
  const file_descriptor go_on(pair[0]);
  file_descriptor waits(pair[1]);

  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) fail(errno, "no process can be made");
  if (child == 0) become(words[0].c_str(), pointers.data(), log_file.get(), in.get(), pair);
  in = {};
  waits = {};
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  // 0 and the process, which is written down before it goes on; then nothing more if the program could be run, else why
  // not.
  int error = 0;
  pid_t pid = 0;
  const auto take = [&](void* to, std::size_t n) {
    ssize_t got = 0;
    do got = ::read(out.get(), to, n);
    while (got < 0 && errno == EINTR);
    return got == static_cast<ssize_t>(n);
  };
  if (!take(&error, sizeof error) || error != 0 || !take(&pid, sizeof pid))
    fail(error != 0 ? error : EIO, "no process can be made");
  write_down(pid);  // or it throws, and the server ends before it has begun
  if (::send(go_on.get(), "", 1, MSG_NOSIGNAL) != 1) fail(errno, "it has ended before it began");
  if (take(&error, sizeof error)) fail(error, "'" + program.string() + "' cannot be run");
}

void background_server::write_down(pid_t pid) const {
  const fs::path part = pid_file().string() + ".new";
  try {
    storage::write_durably(part, std::to_string(pid) + " " + std::to_string(start_time(pid)) + "\n");
  } catch (const io_error& e) {
    throw io_error::in_full(e.code(), name_ + ": its process id: " + e.what());
  }
  std::error_code ec;
  fs::rename(part, pid_file(), ec);
  if (ec) throw io_error(ec, name_ + ": its process id cannot be written to '" + pid_file().string() + "'");
}

bool background_server::wait_listening(std::chrono::steady_clock::time_point deadline) const {
  for (;;) {
    if (!running()) fail_ended();
    if (has_said("listening on ")) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
}

bool background_server::has_said(const std::string& text) const {
  std::ifstream in(log());
  in.seekg(static_cast<std::streamoff>(log_before_));
  for (std::string line; std::getline(in, line);)
    if (line.find(text) != line.npos) return true;
  return false;
}

std::string background_server::log_end() const {
  std::ifstream in(log());
  std::deque<std::string> last;
  for (std::string line; std::getline(in, line);) {
    last.push_back(line);
    if (last.size() > 3) last.pop_front();
  }
  std::string text;
  for (const std::string& line : last) text += (text.empty() ? "" : " | ") + line;
  return text.empty() ? "its log is empty" : "the end of its log: " + text;
}

std::string background_server::ended() const {
  return name_ + " has ended; " + log_end() + " (" + log().string() + ")";
}

void background_server::fail_ended() const { throw io_error::in_full({EIO, std::generic_category()}, ended()); }

bool background_server::ask_to_stop() const {
  const auto pid = running();
  if (!pid) {
    std::error_code ec;
    fs::remove(pid_file(), ec);  // of one that was killed
    return false;
  }
  if (::kill(*pid, SIGTERM) != 0 && errno != ESRCH)
    throw io_error({errno, std::generic_category()},
                   name_ + ": process " + std::to_string(*pid) + " cannot be stopped");
  return true;
}

void background_server::wait_stopped(std::chrono::steady_clock::time_point deadline) const {
  while (const auto pid = running()) {
    if (std::chrono::steady_clock::now() >= deadline)
      throw io_error::in_full({ETIMEDOUT, std::generic_category()},
                              name_ + ": process " + std::to_string(*pid) +
                                  " was asked to stop (SIGTERM) and has not ended; its log is '" + log().string() +
                                  "'.  `kill -9 " + std::to_string(*pid) + "` loses nothing that was acknowledged");
    std::this_thread::sleep_for(10ms);
  }
  std::error_code ec;
  fs::remove(pid_file(), ec);  // no other server has the id, and running() sees that
}

}  // namespace ooc::cluster
