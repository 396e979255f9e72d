// The life of a server's process: until a signal, with one line where it ends in failure.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <string>

#include "storage/base/mutex.hpp"

namespace ooc::servers {

/// The loop that runs a server's network, until SIGTERM or SIGINT.  A signal that comes after the constructor and
/// before run() ends run() at once: whoever reads in the log that the server is there may stop it.
class server_loop {
 public:
  explicit server_loop(unsigned threads);

  boost::asio::io_context& context() noexcept { return context_; }
  /// Until a signal, then calls `stop` on one of the threads and returns when nothing is left to do.  Throws
  /// usage_error (errc::busy) with what fail() was told.
  void run(std::function<void()> stop);
  /// The server cannot go on: ends run() as a signal does.  From any thread, also before run().
  void fail(const std::string& why);

 private:
  void end(const std::string& why);

  const unsigned threads_;
  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
  std::function<void()> stop_;
  mutex mutex_;
  bool ending_ OOC_GUARDED_BY(mutex_) = false;
  std::string failure_ OOC_GUARDED_BY(mutex_);
};

/// Runs `body` as main() of the server `name`: what it throws becomes one line on stderr, in the
/// log, and the status 1.
int run_main(const std::string& name, const std::function<int()>& body);

}  // namespace ooc::servers
