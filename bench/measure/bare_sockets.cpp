#include "measure/bare_sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "measure/stopwatch.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/layout/crc32c.hpp"
#include "storage/service/io_service.hpp"

namespace bench::bare {
namespace {

using ooc::storage::file_descriptor;

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

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

/// The messages of one connection: `count`, message k to or from place(k).
struct lane {
  int fd = -1;
  std::size_t count = 0;
  std::function<std::byte*(std::size_t k)> place;
  /// Called with message k before it is sent, or when it has come; by move_blocking() only.
  std::function<void(std::size_t k, const std::byte*)> see{};
};

void move_blocking(const lane& l, way w) {
  for (std::size_t k = 0; k < l.count; ++k) {
    std::byte* const p = l.place(k);
    if (w == way::out && l.see) l.see(k, p);
    if (w == way::out)
      send_all(l.fd, p, message);
    else
      receive_all(l.fd, p, message);
    if (w == way::in && l.see) l.see(k, p);
  }
}

void move_polling(std::span<const lane> lanes, way w) {
  std::vector<pollfd> ready;
  std::vector<std::size_t> done(lanes.size());  // bytes
  std::size_t left = 0;                         // lanes
  for (const lane& l : lanes) {
    ready.push_back({l.count ? l.fd : -1, static_cast<short>(w == way::out ? POLLOUT : POLLIN), 0});
    left += l.count != 0;
  }
  while (left != 0) {
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) fail("poll");
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      if (ready[i].fd < 0 || ready[i].revents == 0) continue;
      const std::size_t at = done[i] % message;
      std::byte* const p = lanes[i].place(done[i] / message) + at;
      const ssize_t n = w == way::out ? ::send(ready[i].fd, p, message - at, MSG_NOSIGNAL | MSG_DONTWAIT)
                                      : ::recv(ready[i].fd, p, message - at, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) fail("a bare connection");
      if (n < 0) continue;
      done[i] += static_cast<std::size_t>(n);
      if (done[i] != lanes[i].count * message) continue;
      ready[i].fd = -1;
      --left;
    }
  }
}

void move(std::span<const lane> lanes, way w, movers who) {
  if (who == movers::one_thread) return move_polling(lanes, w);
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(lanes.size());
  for (std::size_t i = 0; i < lanes.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        move_blocking(lanes[i], w);
      } catch (const std::exception&) {
        failures[i] = std::current_exception();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& f : failures)
    if (f) std::rethrow_exception(f);
}

/// Connections to a forked process that runs `work` on its ends of them.
class other_process {
 public:
  using sockets = std::vector<file_descriptor>;

  other_process(unsigned connections, const std::function<void(const sockets&)>& work,
                const shaped_link* link = nullptr) {
    if (link) link->enter(shaped_link::host::server);
    const file_descriptor listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = link ? ::inet_addr(link->server_address().c_str()) : htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    auto* const address = reinterpret_cast<sockaddr*>(&a);
    if (::bind(listening.get(), address, size) != 0) fail("bind");
    if (::listen(listening.get(), static_cast<int>(connections)) != 0) fail("listen");
    if (::getsockname(listening.get(), address, &size) != 0) fail("getsockname");
    if (link) link->enter(shaped_link::host::client);
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
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  const sockets& connections() const noexcept { return connections_; }

 private:
  [[noreturn]] static void serve(int listening, unsigned connections, const std::function<void(const sockets&)>& work) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      sockets accepted;
      for (unsigned i = 0; i < connections; ++i) {
        accepted.emplace_back(::accept(listening, nullptr, nullptr));
        if (!accepted.back()) fail("accept");
        no_delay(accepted.back().get());
      }
      work(accepted);
      ::pause();  // the connections stay until this process is killed
    } catch (const std::exception&) {
      ::_exit(1);  // the measuring side sees the connections end
    }
    ::_exit(0);
  }

  sockets connections_;
  pid_t pid_ = -1;
};

/// A byte on every connection, from one side to the other.
void signal_all(const other_process::sockets& all) {
  const std::byte word{};
  for (const file_descriptor& s : all) send_all(s.get(), &word, 1);
}
void await_all(const other_process::sockets& all) {
  std::byte word{};
  for (const file_descriptor& s : all) receive_all(s.get(), &word, 1);
}

/// The lanes of one side.
std::vector<lane> lanes_of(const other_process::sockets& all, std::size_t messages, unsigned times,
                           const std::function<std::byte*(std::size_t m)>& place) {
  std::vector<lane> lanes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t each = (messages + all.size() - 1 - i) / all.size();
    lanes.push_back({all[i].get(), each * times,
                     [i, each, n = all.size(), &place](std::size_t k) { return place(i + k % each * n); }});
  }
  return lanes;
}

/// As carry_seconds(); `prepare` is called with the lanes of each side, and may add to them.
double carry(way w, movers who, unsigned connections, std::span<std::byte> memory, unsigned times,
             const std::function<void(std::span<lane>)>& prepare_here,
             const std::function<void(std::span<lane>)>& prepare_there, const shaped_link* link) {
  const std::size_t messages = memory.size() / message;
  const other_process other(
      connections,
      [&](const other_process::sockets& all) {
        std::vector<std::byte> buffers(connections * message);
        const std::function<std::byte*(std::size_t)> place = [&](std::size_t m) {
          return buffers.data() + m % connections * message;
        };
        auto lanes = lanes_of(all, messages, times, place);
        prepare_there(lanes);
        signal_all(all);
        await_all(all);
        move(lanes, w == way::in ? way::out : way::in, who);
        if (w == way::out) signal_all(all);
      },
      link);
  const std::function<std::byte*(std::size_t)> place = [&](std::size_t m) { return memory.data() + m * message; };
  auto lanes = lanes_of(other.connections(), messages, times, place);
  prepare_here(lanes);
  await_all(other.connections());
  return seconds_of([&] {
    signal_all(other.connections());
    move(lanes, w, who);
    if (w == way::out) await_all(other.connections());
  });
}

void write_all(int fd, const std::byte* p, std::size_t n, std::size_t at) {
  while (n != 0) {
    const ssize_t done = ::pwrite(fd, p, n, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("pwrite");
    p += done;
    n -= static_cast<std::size_t>(done);
    at += static_cast<std::size_t>(done);
  }
}

/// Takes the checksum of every chunk, and nothing of what comes out.
void take_sums(const std::byte* p) {
  for (std::size_t at = 0; at < message; at += ooc::storage::chunk_size) {
    volatile std::uint32_t sum = ooc::storage::chunk_sum(p + at);
    static_cast<void>(sum);
  }
}

}  // namespace

double carry_seconds(way w, movers who, unsigned connections, std::span<std::byte> memory, unsigned times,
                     const shaped_link* link) {
  const auto nothing = [](std::span<lane>) {};
  return carry(w, who, connections, memory, times, nothing, nothing, link);
}

double carry_to_files_seconds(unsigned connections, std::span<std::byte> memory, unsigned times,
                              const std::filesystem::path& folder) {
  const auto look = [](std::span<lane> lanes) {
    for (lane& l : lanes) l.see = [](std::size_t, const std::byte* p) { take_sums(p); };
  };
  const auto look_and_write = [&](std::span<lane> lanes) {
    for (lane& l : lanes) {
      const std::size_t each = l.count / times;
      auto file = std::make_shared<file_descriptor>(
          ::open((folder / ("bare-" + std::to_string(l.fd))).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      if (!*file) fail("open");
      for (std::size_t k = 0; k < each; ++k) write_all(file->get(), l.place(k), message, k * message);
      l.see = [file, each](std::size_t k, const std::byte* p) {
        take_sums(p);
        write_all(file->get(), p, message, k % each * message);
      };
    }
  };
  return carry(way::out, movers::thread_each, connections, memory, times, look, look_and_write, nullptr);
}

double ping_pong_seconds(std::size_t bytes, unsigned count) {
  const other_process other(1, [&](const other_process::sockets& all) {
    const int fd = all.front().get();
    std::vector<std::byte> buffer(bytes);
    for (;;) {
      receive_all(fd, buffer.data(), bytes);
      send_all(fd, buffer.data(), bytes);
    }
  });
  const int fd = other.connections().front().get();
  std::vector<std::byte> buffer(bytes);
  const auto exchange = [&](unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      send_all(fd, buffer.data(), bytes);
      receive_all(fd, buffer.data(), bytes);
    }
  };
  exchange(count / 10 + 1);
  return seconds_of([&] { exchange(count); }) / count;
}

}  // namespace bench::bare
