#include "attack/round.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <new>
#include <system_error>

namespace ooc::attack {

namespace {

int shell_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

int reap(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  return shell_status(status);
}

}  // namespace

const char* name_of(verdict v) noexcept {
  constexpr const char* names[] = {"passed", "LOST", "WRONG", "FAILED", "HUNG", "SLOW", "not run"};
  return names[static_cast<std::uint32_t>(v)];
}

totals& map_totals(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), file.string());
  const off_t size = ::lseek(fd, 0, SEEK_END);
  const bool made = size == 0;
  if (!made && size != sizeof(totals)) {
    ::close(fd);
    throw std::runtime_error(file.string() + " does not hold the totals of an attack of this kind");
  }
  if (made && ::ftruncate(fd, sizeof(totals)) != 0)
    throw std::system_error(errno, std::generic_category(), file.string());
  void* const p = ::mmap(nullptr, sizeof(totals), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (p == MAP_FAILED) throw std::system_error(errno, std::generic_category(), file.string());
  return made ? *new (p) totals : *static_cast<totals*>(p);
}

void raise_to(std::atomic<std::uint64_t>& maximum, std::uint64_t value) noexcept {
  std::uint64_t now = maximum;
  while (now < value && !maximum.compare_exchange_weak(now, value)) {
  }
}

void round::tell(totals& t, verdict v, std::string_view text) noexcept {
  if (t.told.exchange(true)) return;
  const std::size_t n = std::min(text.size(), sizeof t.text - 1);
  std::memcpy(t.text, text.data(), n);
  t.text[n] = 0;
  t.outcome = v;
}

pid_t round::in_child(const std::function<int()>& f) {
  std::cout << std::flush;
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child != 0) return child;
  int status = found;
  try {
    status = f();
  } catch (const finding& e) {
    tell(totals_, e.what_it_is, e.what());
  } catch (const std::exception& e) {
    tell(totals_, verdict::failed, std::string("unexpected: ") + e.what());
  }
  std::cout << std::flush;
  ::_exit(status);
}

int round::wait_for(pid_t child) {
  const int status = reap(child);
  if (status == found) throw finding(totals_.outcome, totals_.text);
  return status;
}

int round::wait_for(pid_t child, std::chrono::milliseconds limit, const std::string& what) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "pidfd_open");
  pollfd p{fd, POLLIN, 0};
  const int ended = ::poll(&p, 1, static_cast<int>(limit.count()));
  ::close(fd);
  if (ended == 1) return wait_for(child);
  ::kill(child, SIGKILL);
  reap(child);
  throw finding(verdict::hung, what + " did not end within " + std::to_string(limit.count()) + " ms");
}

command_result run_command(const std::vector<std::string>& words) {
  // Not a pipe: servers that the command leaves behind would hold it.
  const int text = ::memfd_create("output", MFD_CLOEXEC);
  if (text < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(text, 1);
    ::dup2(text, 2);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  command_result r;
  r.status = reap(child);
  r.output.resize(static_cast<std::size_t>(::lseek(text, 0, SEEK_END)));
  const ssize_t n = ::pread(text, r.output.data(), r.output.size(), 0);
  r.output.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  ::close(text);
  return r;
}

void must_run(const std::vector<std::string>& words) {
  const command_result c = run_command(words);
  if (c.status == 0) return;
  std::string command;
  for (const std::string& w : words) command += w + " ";
  throw finding(verdict::not_run, command + "(needs root, and loop devices for disks): " + c.output);
}

}  // namespace ooc::attack
