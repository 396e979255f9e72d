#include "sources.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio.hpp>
#include <iostream>
#include <mutex>
#include <system_error>
#include <thread>

#include "endpoint.hpp"
#include "oocarray/file.hpp"

namespace papers {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

class local final : public source {
 public:
  explicit local(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path);
  }
  ~local() override { ::close(fd_); }
  local(const local&) = delete;
  local& operator=(const local&) = delete;

  void read(std::uint64_t offset, std::span<std::byte> out) override {
    while (!out.empty()) {
      const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (n < 0) throw std::system_error(errno, std::generic_category(), "pread");
      if (n == 0) throw std::runtime_error("the file is too short");
      out = out.subspan(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    }
  }

 private:
  int fd_;
};

class stored final : public source {
 public:
  stored(const std::string& url, const std::string& path)
      : store_(ooc::store::open(url)), file_(ooc::file::open(store_, path)) {}

  void read(std::uint64_t offset, std::span<std::byte> out) override {
    if (file_.read_at(offset, out) != out.size()) throw std::runtime_error("the file is too short");
  }

 private:
  ooc::store store_;
  ooc::file file_;
};

/// A client asks this of a bare server.
struct order {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

class bare final : public source {
 public:
  explicit bare(const std::vector<std::string>& addresses) {
    for (const std::string& a : addresses) {
      auto c = std::make_unique<connection>(tcp::socket(context_));
      c->socket.connect(endpoint<tcp>(a));
      c->socket.set_option(tcp::no_delay(true));
      connections_.push_back(std::move(c));
    }
  }

  void read(std::uint64_t offset, std::span<std::byte> out) override {
    connection& c = *connections_[offset / chunk % connections_.size()];
    const std::lock_guard lock(c.mutex);
    const order o{offset, out.size()};
    asio::write(c.socket, asio::buffer(&o, sizeof o));
    asio::read(c.socket, asio::buffer(out.data(), out.size()));
  }

 private:
  struct connection {
    explicit connection(tcp::socket s) : socket(std::move(s)) {}
    std::mutex mutex;
    tcp::socket socket;
  };

  asio::io_context context_;
  std::vector<std::unique_ptr<connection>> connections_;
};

/// Answers one client until it leaves.
void answer(tcp::socket s, source& file) {
  std::vector<std::byte> memory;
  order o;
  boost::system::error_code gone;
  while (asio::read(s, asio::buffer(&o, sizeof o), gone) == sizeof o) {
    memory.resize(o.bytes);
    file.read(o.offset, memory);
    asio::write(s, asio::buffer(memory));
  }
  if (gone != asio::error::eof) throw boost::system::system_error(gone);
}

void take_clients(tcp::acceptor& acceptor, source& file) {
  for (;;) {
    tcp::socket s = acceptor.accept();
    s.set_option(tcp::no_delay(true));
    std::thread([client = std::move(s), &file]() mutable {
      try {
        answer(std::move(client), file);
      } catch (const std::exception& e) {  // the client finds the connection closed
        std::cerr << "transfers serve: " << e.what() << "\n";
      }
    }).detach();
  }
}

}  // namespace

std::unique_ptr<source> local_source(const std::string& path) { return std::make_unique<local>(path); }

std::unique_ptr<source> store_source(const std::string& url, const std::string& path) {
  return std::make_unique<stored>(url, path);
}

std::unique_ptr<source> bare_source(const std::vector<std::string>& addresses) {
  return std::make_unique<bare>(addresses);
}

void serve_file(const std::string& path, const std::vector<std::string>& addresses) {
  const auto file = local_source(path);
  asio::io_context context;
  std::vector<tcp::acceptor> acceptors;
  for (const std::string& a : addresses) acceptors.emplace_back(context, endpoint<tcp>(a));
  for (tcp::acceptor& a : acceptors) std::thread(take_clients, std::ref(a), std::ref(*file)).detach();
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
  }
  std::_Exit(0);  // threads are at their clients
}

}  // namespace papers
