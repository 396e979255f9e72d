// GET /metrics over HTTP/1.1 (Boost.Beast), for Prometheus and for people with curl.
//
// Nobody proves who he is here, so the addresses are those of this machine unless others are given.
// A client has `patience` for a request of at most 4 KiB, and gets one answer.  There are at most
// `most_connections`: a new one ends the oldest, so slow clients keep nobody else out.  The
// server's own clients are not concerned: they connect elsewhere.
//
// Any thread may call stop(); the connections run on the threads of the io_context.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/listener_group.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::servers {

class metrics_endpoint {
 public:
  static constexpr std::size_t most_connections = 16;
  static constexpr std::chrono::seconds patience{5};

  /// Makes the text, on a thread of the io_context.
  using page = std::function<std::string()>;

  /// Must outlive what runs in `context`.
  metrics_endpoint(boost::asio::io_context& context, page make);

  /// "9100" is 127.0.0.1:9100, "0.0.0.0:9100" is for everybody; none: no endpoint.  Throws as
  /// listener::open() does, and logs where it listens.
  void start(const std::vector<std::string>& addresses);
  void stop();

 private:
  class connection;

  void accepted(std::shared_ptr<wire::stream_socket> socket);
  boost::asio::awaitable<void> serve(std::shared_ptr<connection> c);

  const page make_;
  listener_group listeners_;
  mutex mutex_;
  std::deque<std::shared_ptr<connection>> open_ OOC_GUARDED_BY(mutex_);  // oldest first
  bool stopping_ OOC_GUARDED_BY(mutex_) = false;
};

}  // namespace ooc::servers
