#include "measure/child.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "measure/memory_cap.hpp"

namespace bench {
namespace {

volatile sig_atomic_t interrupted = 0;

void note_interrupt(int) { interrupted = 1; }

std::uint64_t peak_rss() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
  return 0;
}

double processor_seconds() {
  rusage u = {};
  ::getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

[[noreturn]] void be_the_child(int out, const memory_cap& cap, const std::function<json()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_DFL);
  json result;
  try {
    cap.enter();
    result["result"] = work();
    result["result"]["peak_rss"] = peak_rss();
    result["result"]["processor_seconds"] = processor_seconds();
  } catch (const std::exception& e) {
    result = {{"error", e.what()}};
  }
  const std::string text = result.dump();
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(out, text.data() + done, text.size() - done);
    if (n < 0) ::_exit(1);
    done += static_cast<std::size_t>(n);
  }
  ::_exit(0);
}

}  // namespace

void interrupts_throw() {
  struct sigaction a = {};
  a.sa_handler = note_interrupt;  // no SA_RESTART: read() below returns
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(s, &a, nullptr);
}

json in_child(std::uint64_t cap_bytes, const std::function<json()>& work) {
  const memory_cap cap(cap_bytes);
  int ends[2];
  if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    ::close(ends[0]);
    be_the_child(ends[1], cap, work);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t n = interrupted ? 0 : ::read(ends[0], buffer, sizeof buffer);
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) break;
  }
  ::close(ends[0]);
  if (interrupted) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (interrupted) throw std::runtime_error("interrupted");
  if (WIFSIGNALED(status))
    throw std::runtime_error("a run was killed by signal " + std::to_string(WTERMSIG(status)) +
                             (WTERMSIG(status) == SIGKILL && cap.active()
                                  ? " (perhaps by its memory cap of " + std::to_string(cap_bytes >> 20) + " MiB)"
                                  : ""));
  if (text.empty()) throw std::runtime_error("a run ended with status " + std::to_string(WEXITSTATUS(status)));
  const json result = json::parse(text);
  if (result.contains("error")) throw std::runtime_error(result["error"].get<std::string>());
  return result["result"];
}

}  // namespace bench
