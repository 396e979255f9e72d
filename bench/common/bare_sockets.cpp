#include "common/bare_sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

#include "common/stopwatch.hpp"
#include "storage/file_descriptor.hpp"

namespace bench::bare {
namespace {

using ooc::storage::file_descriptor;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void no_delay(int fd) {
  const int on = 1;
  if (::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
}

void send_all(int fd, const std::byte* p, std::size_t n) {
  while (n != 0) {
    const ssize_t done = ::send(fd, p, n, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("send");
    p += done;
    n -= static_cast<std::size_t>(done);
  }
}

void receive_all(int fd, std::byte* p, std::size_t n) {
  while (n != 0) {
    const ssize_t done = ::recv(fd, p, n, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("recv");
    p += done;
    n -= static_cast<std::size_t>(done);
  }
}

/// Connections to a forked process that serves each with `work` in a thread of its own.
class other_process {
 public:
  other_process(unsigned connections, const std::function<void(int fd, unsigned index)>& work) {
    const file_descriptor listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    auto* const address = reinterpret_cast<sockaddr*>(&a);
    if (::bind(listening.get(), address, size) != 0) fail("bind");
    if (::listen(listening.get(), static_cast<int>(connections)) != 0) fail("listen");
    if (::getsockname(listening.get(), address, &size) != 0) fail("getsockname");
    pid_ = ::fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) serve(listening.get(), connections, work);
    for (unsigned i = 0; i < connections; ++i) {
      connections_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(connections_.back().get(), address, size) != 0) fail("connect");
      no_delay(connections_.back().get());
    }
  }
  ~other_process() {
    connections_.clear();
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  int connection(unsigned i) const { return connections_[i].get(); }

 private:
  [[noreturn]] static void serve(int listening, unsigned connections,
                                 const std::function<void(int, unsigned)>& work) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      std::vector<std::thread> threads;
      for (unsigned i = 0; i < connections; ++i) {
        const int fd = ::accept(listening, nullptr, nullptr);
        if (fd < 0) ::_exit(1);
        no_delay(fd);
        threads.emplace_back([fd, i, &work] {
          try {
            work(fd, i);
          } catch (const std::system_error&) {
            ::_exit(1);  // the measuring side sees the connection end
          }
        });
      }
      for (std::thread& t : threads) t.join();
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }

  std::vector<file_descriptor> connections_;
  pid_t pid_ = -1;
};

}  // namespace

double carry_seconds(way w, unsigned connections, std::span<std::byte> memory, unsigned times) {
  const std::size_t messages = memory.size() / message;
  const auto count = [&](unsigned index) {  // messages of a connection, each time
    return (messages + connections - 1 - index) / connections;
  };
  const other_process other(connections, [&](int fd, unsigned index) {
    std::vector<std::byte> buffer(message);
    std::byte word{};
    receive_all(fd, &word, 1);
    for (std::size_t left = count(index) * times; left != 0; --left) {
      if (w == way::in)
        send_all(fd, buffer.data(), message);
      else
        receive_all(fd, buffer.data(), message);
    }
    if (w == way::out) send_all(fd, &word, 1);
    receive_all(fd, &word, 1);  // until the end
  });
  const stopwatch time;
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(connections);
  for (unsigned index = 0; index < connections; ++index)
    threads.emplace_back([&, index] {
      try {
        const int fd = other.connection(index);
        std::byte word{};
        send_all(fd, &word, 1);
        for (unsigned t = 0; t < times; ++t)
          for (std::size_t m = index; m < messages; m += connections) {
            if (w == way::in)
              receive_all(fd, memory.data() + m * message, message);
            else
              send_all(fd, memory.data() + m * message, message);
          }
        if (w == way::out) receive_all(fd, &word, 1);
      } catch (const std::exception&) {
        failures[index] = std::current_exception();
      }
    });
  for (std::thread& t : threads) t.join();
  const double seconds = time.seconds();
  for (const std::exception_ptr& f : failures)
    if (f) std::rethrow_exception(f);
  return seconds;
}

double ping_pong_seconds(std::size_t bytes, unsigned count) {
  const other_process other(1, [&](int fd, unsigned) {
    std::vector<std::byte> buffer(bytes);
    for (;;) {
      receive_all(fd, buffer.data(), bytes);
      send_all(fd, buffer.data(), bytes);
    }
  });
  std::vector<std::byte> buffer(bytes);
  const auto exchange = [&](unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      send_all(other.connection(0), buffer.data(), bytes);
      receive_all(other.connection(0), buffer.data(), bytes);
    }
  };
  exchange(count / 10 + 1);
  return seconds_of([&] { exchange(count); }) / count;
}

}  // namespace bench::bare
