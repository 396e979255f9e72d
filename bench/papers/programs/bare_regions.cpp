#include "bare_regions.hpp"

#include <boost/asio.hpp>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "endpoint.hpp"

namespace papers {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// A client asks this of a server before each transfer.
struct order {
  std::uint64_t to_server = 0;  ///< 1: the bytes go to the server, else to the client
  std::uint64_t bytes = 0;
};

constexpr std::size_t chunk = 1 << 20;

/// Answers one client until it leaves.
void answer(tcp::socket s) {
  std::vector<std::byte> memory(chunk);
  order o;
  while (asio::read(s, asio::buffer(&o, sizeof o)) == sizeof o) {
    for (std::uint64_t left = o.bytes; left > 0;) {
      const auto piece = asio::buffer(memory, std::min<std::uint64_t>(left, chunk));
      left -= o.to_server ? asio::read(s, piece) : asio::write(s, piece);
    }
    if (o.to_server) asio::write(s, asio::buffer(&o, sizeof o));
  }
}

}  // namespace

struct bare_client::state {
  asio::io_context context;
  std::vector<tcp::socket> sockets;

  /// Calls f(socket, first byte, bytes) for every server's part, all at once.
  template <class F>
  void in_parts(std::uint64_t bytes, F&& f) {
    const std::uint64_t n = sockets.size();
    std::vector<std::exception_ptr> failed(n);
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < n; ++i)
      threads.emplace_back([&, i] {
        try {
          f(sockets[i], bytes * i / n, bytes * (i + 1) / n - bytes * i / n);
        } catch (...) {
          failed[i] = std::current_exception();
        }
      });
    threads.clear();
    for (const auto& e : failed)
      if (e) std::rethrow_exception(e);
  }
};

bare_client::bare_client(const std::vector<std::string>& servers) : state_(std::make_unique<state>()) {
  for (const std::string& address : servers) {
    tcp::socket s(state_->context);
    s.connect(endpoint<tcp>(address));
    s.set_option(tcp::no_delay(true));
    state_->sockets.push_back(std::move(s));
  }
}

bare_client::~bare_client() = default;

void bare_client::create(std::uint64_t, std::uint64_t) {
  throw std::runtime_error("bare sockets have no file to create");
}

void bare_client::write(const region& r, std::span<const std::byte> data) {
  state_->in_parts(r.bytes, [&](tcp::socket& s, std::uint64_t first, std::uint64_t bytes) {
    order o{1, bytes};
    asio::write(s, asio::buffer(&o, sizeof o));
    asio::write(s, asio::buffer(data.data() + first, bytes));
    asio::read(s, asio::buffer(&o, sizeof o));
  });
}

void bare_client::read(const region& r, std::span<std::byte> data) {
  state_->in_parts(r.bytes, [&](tcp::socket& s, std::uint64_t first, std::uint64_t bytes) {
    const order o{0, bytes};
    asio::write(s, asio::buffer(&o, sizeof o));
    asio::read(s, asio::buffer(data.data() + first, bytes));
  });
}

namespace {

/// Takes clients at one address for ever, a thread for each.
void take_clients(tcp::acceptor& acceptor) {
  for (;;) {
    tcp::socket s = acceptor.accept();
    s.set_option(tcp::no_delay(true));
    std::thread([client = std::move(s)]() mutable {
      try {
        answer(std::move(client));
      } catch (const boost::system::system_error& e) {
        if (e.code() != asio::error::eof) std::cerr << "regions serve: " << e.what() << "\n";
      }
    }).detach();
  }
}

}  // namespace

void bare_serve(const std::vector<std::string>& addresses) {
  asio::io_context context;
  std::vector<tcp::acceptor> acceptors;
  for (const std::string& a : addresses) acceptors.emplace_back(context, endpoint<tcp>(a));
  for (tcp::acceptor& a : acceptors) std::thread(take_clients, std::ref(a)).detach();
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
  }
  std::_Exit(0);  // threads are at their clients
}

}  // namespace papers
