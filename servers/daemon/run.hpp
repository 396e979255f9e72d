// The life of a server's process: until a signal, with one line where it ends in failure.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>

namespace ooc::servers {

/// Runs `context` on `threads` threads until SIGTERM or SIGINT, then calls `stop` on one of them
/// and returns when nothing is left to do.
void run_until_signal(boost::asio::io_context& context, unsigned threads,
                      std::function<void()> stop);

/// Runs `body` as main() of the server `name`: what it throws becomes one line on stderr, in the
/// log, and the status 1.
int run_main(const std::string& name, const std::function<int()>& body);

}  // namespace ooc::servers
