// Which connections are given a small receive window.
#include "storage/wire/receive_window.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using ooc::wire::receive_window;
namespace asio = boost::asio;

namespace {

constexpr std::size_t kib = 1 << 10;

/// A connection whose round trip the system knows.
struct connection {
  asio::io_context context;
  asio::ip::tcp::socket near{context}, far{context};

  connection() {
    asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    near.connect(acceptor.local_endpoint());
    far = acceptor.accept();
    std::array<char, 64> bytes{};
    asio::write(near, asio::buffer(bytes));
    asio::read(far, asio::buffer(bytes));
    asio::write(far, asio::buffer(bytes));
    asio::read(near, asio::buffer(bytes));
  }
  int limit() {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    REQUIRE(::getsockopt(near.native_handle(), IPPROTO_TCP, TCP_WINDOW_CLAMP, &bytes, &size) == 0);
    return bytes;
  }
};

}  // namespace

constexpr std::size_t ethernet = 1460;
constexpr receive_window::path near_by{100us, ethernet}, far_off{20ms, ethernet};

TEST_CASE("What comes slowly from nearby needs a small window only", "[wire]") {
  CHECK(receive_window::to_be_small(false, 0.8e6, near_by));
  CHECK_FALSE(receive_window::to_be_small(false, 25e6, near_by));
}

TEST_CASE("What is far away keeps the window that the system gives it", "[wire]") {
  // 16 KB in each round trip: the window is what makes it slow, or soon would be.
  CHECK_FALSE(receive_window::to_be_small(false, 0.8e6, far_off));
  CHECK_FALSE(receive_window::to_be_small(true, 0.8e6, far_off));
}

TEST_CASE("A window does not change to and fro at the limit", "[wire]") {
  const double just_faster = 1.1 * receive_window::slow;
  CHECK_FALSE(receive_window::to_be_small(false, just_faster, near_by));
  CHECK(receive_window::to_be_small(true, just_faster, near_by));
  CHECK_FALSE(receive_window::to_be_small(true, 2.1 * receive_window::slow, near_by));
}

TEST_CASE("The system is told of a slow connection, and when it is fast again", "[wire]") {
  connection c;
  const int before = c.limit();
  receive_window w;
  const int fd = c.near.native_handle();
  w.follow(fd, 16 * kib, 20ms);
  CHECK(w.is_small());
  CHECK(c.limit() != before);
  for (int i = 0; i < 20; ++i) w.follow(fd, 512 * kib, 20ms);
  CHECK_FALSE(w.is_small());
  CHECK(c.limit() >= before);
}

TEST_CASE("A small window that is no longer allowed is the system's again", "[wire]") {
  connection c;
  const int before = c.limit();
  receive_window w;
  const int fd = c.near.native_handle();
  w.allow_small(false);
  w.follow(fd, 16 * kib, 20ms);
  CHECK_FALSE(w.is_small());
  w.allow_small(true);
  w.follow(fd, 16 * kib, 20ms);
  CHECK(w.is_small());
  w.allow_small(false);
  w.follow(fd, 16 * kib, 20ms);
  CHECK_FALSE(w.is_small());
  CHECK(c.limit() >= before);
}

TEST_CASE("One late region does not change the window of a fast connection", "[wire]") {
  connection c;
  receive_window w;
  const int fd = c.near.native_handle();
  for (int i = 0; i < 20; ++i) w.follow(fd, 512 * kib, 10ms);
  w.follow(fd, 16 * kib, 40ms);
  CHECK_FALSE(w.is_small());
}

TEST_CASE("A socket that is not TCP keeps its window", "[wire]") {
  std::array<int, 2> pair{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0);
  receive_window w;
  w.follow(pair[0], 16 * kib, 20ms);
  CHECK_FALSE(w.is_small());
  ::close(pair[0]);
  ::close(pair[1]);
}
