#include "storage/client/metadata_connection.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cerrno>
#include <exception>
#include <optional>
#include <utility>

#include "storage/client/outage.hpp"
#include "storage/wire/address.hpp"
#include "storage/wire/greeting.hpp"
#include "storage/wire/messages.hpp"

namespace ooc::storage {

namespace asio = boost::asio;
using wire::frame_header;
using wire::frame_kind;

namespace {

constexpr wire::frame_limits answer_limits{.body = wire::max_answer_body, .payload = 0};

[[noreturn]] void lose(int error, const std::string& why) {
  throw wire::connection_error({error, std::generic_category()}, why);
}

}  // namespace

metadata_connection::metadata_connection(std::string address) : address_(std::move(address)) {}

metadata_connection::~metadata_connection() { close(); }

// Operations that wait on the socket end with it, the next time that the context runs.
void metadata_connection::close() noexcept {
  boost::system::error_code ignored;
  if (sender_) sender_->close();
  if (socket_) socket_->close(ignored);
  open_ = false;
}

// Where time is up the connection is closed, which ends what it waits for.
void metadata_connection::run(asio::awaitable<void> what, deadline_point deadline) {
  std::optional<std::exception_ptr> ended;
  asio::co_spawn(context_, std::move(what), [&](std::exception_ptr e) { ended = e; });
  late_ = stopped_ = false;
  while (!ended) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= tell_at_) {
      tell_at_ = deadline_point::max();
      [&]() noexcept { tell_(); }();  // what is under way refers to this frame
    }
    if (now >= deadline && !late_) {
      late_ = true;
      unsent_ = sender_ && sender_->queued_bytes() != 0;
      close();
    }
    const auto until = late_ ? deadline_point::max() : std::min(deadline, tell_at_);
    context_.restart();
    context_.run_one_until(until);
    const auto then = std::chrono::steady_clock::now();
    stopped_ = stopped_ || (then > until && then - std::max(until, now) > outage::was_stopped);
  }
  if (!*ended) return;
  close();
  std::rethrow_exception(*ended);
}

asio::awaitable<void> metadata_connection::greet(const wire::hello_info& me, const wire::key_ptr& key) {
  const std::function<bool()> enough = [this] { return late_; };
  const wire::server_address to = wire::parse_address(address_);
  co_await wire::connect(to, socket_, enough);
  reader_ = std::make_unique<wire::frame_reader>(socket_, wire::handshake_limits);
  sender_ = std::make_shared<wire::frame_sender>(socket_);
  server_ = co_await wire::greet({*socket_, *reader_, *sender_}, me, key);
  reader_->set_limits(answer_limits);
}

void metadata_connection::connect(const wire::hello_info& me, const wire::key_ptr& key, deadline_point deadline) {
  close();
  sender_.reset();
  reader_.reset();
  socket_.reset();
  try {
    run(greet(me, key), deadline);
  } catch (const wire::connection_refused&) {
    throw;
  } catch (const wire::connection_error& e) {
    if (!late_) throw;
    lose(ETIMEDOUT, !sender_ ? "connecting takes too long" : "the server does not finish the handshake in time");
  }
  open_ = true;
}

metadata_connection::answer metadata_connection::ask(frame_kind kind, std::string_view body, deadline_point deadline) {
  frame_header question;
  question.kind = kind;
  question.flags = frame_header::last;
  question.id = ++last_id_;
  frame_header h;
  const auto exchange = [&]() -> asio::awaitable<void> {
    sender_->send({wire::encode_frame(question, body), {}, {}});
    h = co_await reader_->next();
    if (h.kind != frame_kind::reply || h.id != question.id)
      lose(EPROTO, "the server sent a " + wire::kind_name(h.kind) + " that was not asked for");
    if (h.incarnation != server_.incarnation) lose(EPROTO, "the answer comes from another incarnation of the server");
  };
  try {
    run(exchange(), deadline);
  } catch (const wire::connection_error&) {
    if (!late_) throw;
    lose(ETIMEDOUT, unsent_ ? "the server does not take what it is sent" : "the answer does not come in time");
  }
  return {h, reader_->body()};
}

}  // namespace ooc::storage
