#include "daemon/metrics_endpoint.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <utility>

namespace ooc::servers {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr std::uint32_t header_limit = 4096;

using response = http::response<http::string_body>;

response answer(http::status status, std::string text) {
  response r(status, 11);
  r.set(http::field::server, "oocarray/" OOCARRAY_VERSION);
  r.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
  r.body() = std::move(text);
  r.keep_alive(false);
  r.prepare_payload();
  return r;
}

response answer_to(const http::request<http::empty_body>& asked, const metrics_endpoint::page& make) {
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) {
    response r = answer(http::status::method_not_allowed, "only GET and HEAD are answered here\n");
    r.set(http::field::allow, "GET, HEAD");
    return r;
  }
  const std::string_view target(asked.target().data(), asked.target().size());
  if (target.substr(0, target.find('?')) != "/metrics")
    return answer(http::status::not_found, "there is /metrics, and nothing else\n");
  response r = answer(http::status::ok, make());
  if (asked.method() == http::verb::head) r.body().clear();  // the length stays
  return r;
}

}  // namespace

class metrics_endpoint::connection : public std::enable_shared_from_this<connection> {
 public:
  explicit connection(wire::stream_socket socket) : stream_(std::move(socket)) {}

  asio::awaitable<void> run(const page& make) {
    boost::system::error_code ec;
    const auto into_ec = [&] { return asio::redirect_error(asio::use_awaitable, ec); };
    beast::flat_buffer buffer(header_limit);
    http::request_parser<http::empty_body> request;
    request.header_limit(header_limit);
    request.body_limit(0);
    stream_.expires_after(patience);  // for all of it
    co_await http::async_read_header(stream_, buffer, request, into_ec());
    response r;
    if (!ec) {
      r = answer_to(request.get(), make);
    } else if (ec.category() == http::make_error_code(http::error::bad_method).category() &&
               ec != http::error::end_of_stream) {
      r = answer(http::status::bad_request, "this is no request: " + ec.message() + "\n");
    } else {
      co_return;  // it went away, or was too slow
    }
    co_await http::async_write(stream_, r, into_ec());
  }

  void close() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->stream_.close(); });
  }

  auto get_executor() { return stream_.get_executor(); }

 private:
  beast::basic_stream<wire::stream_socket::protocol_type> stream_;
};

metrics_endpoint::metrics_endpoint(asio::io_context& context, page make)
    : make_(std::move(make)),
      listeners_(context, [this](std::shared_ptr<wire::stream_socket> s) { accepted(std::move(s)); }) {}

void metrics_endpoint::start(const std::vector<std::string>& addresses) {
  std::vector<std::string> full;
  for (const std::string& a : addresses) full.push_back(a.find(':') == std::string::npos ? "127.0.0.1:" + a : a);
  listeners_.start(full, true);
  for (const std::string& a : listeners_.addresses()) spdlog::info("metrics at http://{}/metrics", a);
}

void metrics_endpoint::stop() {
  listeners_.stop();
  const lock_guard lock(mutex_);
  stopping_ = true;
  for (const auto& c : open_) c->close();
}

void metrics_endpoint::accepted(std::shared_ptr<wire::stream_socket> socket) {
  const auto c = std::make_shared<connection>(std::move(*socket));
  {
    const lock_guard lock(mutex_);
    if (stopping_) return;
    if (open_.size() == most_connections) {
      open_.front()->close();
      open_.pop_front();
    }
    open_.push_back(c);
  }
  asio::co_spawn(c->get_executor(), serve(c), asio::detached);
}

asio::awaitable<void> metrics_endpoint::serve(std::shared_ptr<connection> c) {
  try {
    co_await c->run(make_);
  } catch (const std::exception& e) {
    spdlog::error("metrics: {}", e.what());
  }
  const lock_guard lock(mutex_);
  std::erase(open_, c);
}

}  // namespace ooc::servers
