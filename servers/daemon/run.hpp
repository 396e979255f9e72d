// The life of a server's process: until a signal, with one line where it ends in failure.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <string>

namespace ooc::servers {

/// The loop that runs a server's network, until SIGTERM or SIGINT.  A signal that comes after the constructor and
/// before run() ends run() at once: whoever reads in the log that the server is there may stop it.
class server_loop {
 public:
  explicit server_loop(unsigned threads);

  boost::asio::io_context& context() noexcept { return context_; }
  /// Until a signal, then calls `stop` on one of the threads and returns when nothing is left to do.
  void run(std::function<void()> stop);

 private:
  const unsigned threads_;
  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
};

/// Runs `body` as main() of the server `name`: what it throws becomes one line on stderr, in the
/// log, and the status 1.
int run_main(const std::string& name, const std::function<int()>& body);

}  // namespace ooc::servers
