#include "storage/client/io_connection.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>

#include "storage/layout/io_part.hpp"
#include "storage/wire/address.hpp"
#include "storage/wire/greeting.hpp"
#include "storage/wire/messages.hpp"

namespace ooc::storage {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using wire::frame_header;

namespace {

constexpr auto connect_limit = 5s;

}  // namespace

io_connection::io_connection(asio::io_context& context, io_connection_owner& owner, std::size_t index,
                             std::string address)
    : owner_(owner), index_(index), address_(std::move(address)), timer_(context, steady_clock::time_point::max()) {}

void io_connection::wake() {
  if (idle_) timer_.cancel();
}

void io_connection::stop() {
  stopping_ = true;
  timer_.cancel();
  cut();
}

// Other threads may be sending: they end first, the socket goes with its last user.
void io_connection::cut() {
  boost::system::error_code ec;
  if (sender_)
    sender_->close();
  else if (socket_)
    socket_->close(ec);
}

void io_connection::check(steady_clock::time_point now) {
  if (connecting_since_ == steady_clock::time_point::max()) return;
  if (now - connecting_since_ < std::min<steady_clock::duration>(connect_limit, owner_.options().deadline)) return;
  give_up();
}

void io_connection::give_up() {
  given_up_ = true;
  cut();
}

void io_connection::move_to(const std::string& address) {
  if (address == address_) return;
  address_ = address;
  if (connecting_since_ != steady_clock::time_point::max()) give_up();
}

asio::awaitable<void> io_connection::pause(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  boost::system::error_code ec;
  co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
}

asio::awaitable<void> io_connection::run() {
  auto backoff = 10ms;
  while (!stopping_) {
    // Until somebody wants something.  A wake-up comes on this thread, and so never between the look and the wait.
    idle_ = true;
    while (!stopping_ && !owner_.wants_connection()) co_await pause(24h);
    idle_ = false;
    if (stopping_) break;
    std::string why;
    bool was_up = false;
    try {
      connecting_since_ = steady_clock::now();
      given_up_ = false;
      const std::function<bool()> enough = [this] { return stopping_ || given_up_; };
      const wire::server_address to = wire::parse_address(address_);
      co_await wire::connect(to, socket_, enough);
      wire::frame_reader reader(socket_, wire::handshake_limits);
      reader.limit_window();
      sender_ = std::make_shared<wire::frame_sender>(socket_);
      const std::uint32_t number = owner_.next_connection();
      const std::uint64_t epoch = co_await shake_hands(reader, number);
      connecting_since_ = steady_clock::time_point::max();
      reader.set_limits({wire::max_answer_body, static_cast<std::uint32_t>(io_part::max_bytes + (1 << 16))});
      was_up = true;
      owner_.connection_up(index_, number, sender_, wire::on_this_host(*socket_), epoch);
      for (;;) {
        const frame_header h = co_await reader.next();
        co_await owner_.frame_came(index_, reader, h);
        // A server whose frames never end would keep the thread from the others.
        co_await asio::post(socket_->get_executor(), asio::use_awaitable);
      }
    } catch (const std::exception& e) {
      why = e.what();
    }
    const bool slow = connecting_since_ != steady_clock::time_point::max() &&
                      steady_clock::now() - connecting_since_ >= connect_limit;
    connecting_since_ = steady_clock::time_point::max();
    cut();
    sender_.reset();
    socket_.reset();
    if (slow) why = "it does not answer";
    owner_.connection_down(index_, why);
    if (stopping_) break;
    backoff = was_up ? 10ms : std::min<std::chrono::milliseconds>(backoff * 2, 1000ms);
    co_await pause(backoff);
  }
}

/// Returns the server's epoch.
asio::awaitable<std::uint64_t> io_connection::shake_hands(wire::frame_reader& reader, std::uint32_t number) {
  const remote_node_options& o = owner_.options();
  wire::hello_info me;
  me.client = o.client.id;
  me.connection = number;
  me.role = wire::peer_role::client;
  me.wanted = wire::server_role::io;
  me.who = o.client.who;
  me.store_uuid = o.store_uuid;
  me.name = o.client.name;
  me.frames = o.client.frames;
  const wire::server_info server = co_await wire::greet({*socket_, reader, *sender_}, me, o.client.key);
  // A Unix socket's path means another server on every host.
  if (const std::uint32_t node = server.node; node != o.index)
    throw wire::connection_error(std::make_error_code(std::errc::address_not_available),
                                 "node " + std::to_string(node) + " of the store answers there");
  co_return server.epoch;
}

}  // namespace ooc::storage
