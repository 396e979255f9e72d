#include "daemon/run.hpp"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

namespace ooc::servers {

void run_until_signal(boost::asio::io_context& context, unsigned threads,
                      std::function<void()> stop) {
  boost::asio::signal_set signals(context, SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code& ec, int signal) {
    if (ec) return;
    spdlog::info("signal {}: stopping", signal);
    stop();
  });
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back([&] { context.run(); });
  context.run();
  for (std::thread& t : others) t.join();
}

int run_main(const std::string& name, const std::function<int()>& body) {
  std::signal(SIGPIPE, SIG_IGN);
  ::umask(077);  // what a server makes is its own
  try {
    return body();
  } catch (const std::exception& e) {
    std::string line = e.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::cerr << name << ": " << line << std::endl;
    return 1;
  }
}

}  // namespace ooc::servers
