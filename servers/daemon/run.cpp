#include "daemon/run.hpp"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <csignal>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"

namespace ooc::servers {

server_loop::server_loop(unsigned threads)
    : threads_(threads), context_(static_cast<int>(threads)), signals_(context_, SIGTERM, SIGINT) {}

void server_loop::run(std::function<void()> stop) {
  stop_ = std::move(stop);
  signals_.async_wait([&](const boost::system::error_code& ec, int signal) {
    if (ec) return;
    spdlog::info("signal {}: stopping", signal);
    end({});
  });
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads_; ++i) others.emplace_back([&] { context_.run(); });
  context_.run();
  for (std::thread& t : others) t.join();
  const lock_guard lock(mutex_);
  if (!failure_.empty()) throw usage_error(errc::busy, failure_);
}

void server_loop::fail(const std::string& why) {
  boost::asio::post(context_, [this, why] {
    spdlog::error("{}: stopping", why);
    end(why);
    signals_.cancel();
  });
}

void server_loop::end(const std::string& why) {
  {
    const lock_guard lock(mutex_);
    if (std::exchange(ending_, true)) return;
    failure_ = why;
  }
  stop_();
}

int run_main(const std::string& name, const std::function<int()>& body) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes (ulimit -f) is an error of who writes
  ::umask(077);                   // what a server makes is its own
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
