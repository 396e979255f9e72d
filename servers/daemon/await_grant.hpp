// A coroutine that waits for something that is handed out by a callback, on whatever thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace ooc::servers {

/// Calls ask(go), and returns what `go` (called once, at once or later) is given; an empty T where
/// `abandoned` became true before that: what comes then is dropped.  `executor` is the coroutine's and
/// runs one handler at a time.
template <class T, class Ask, class Abandoned>
boost::asio::awaitable<T> await_grant(boost::asio::any_io_executor executor, Ask ask, Abandoned abandoned) {
  namespace asio = boost::asio;
  struct place {
    explicit place(const asio::any_io_executor& e) : wake(e) {}
    T what{};
    bool there = false;
    std::thread::id asking = std::this_thread::get_id();  // while ask() is being called
    asio::steady_timer wake;
  };
  const auto p = std::make_shared<place>(executor);
  ask([p, executor, asker = p->asking](T what) {
    if (std::this_thread::get_id() == asker && p->asking == asker) {
      p->what = std::move(what);
      p->there = true;
      return;
    }
    asio::post(executor, [p, what = std::make_shared<T>(std::move(what))] {
      p->what = std::move(*what);
      p->there = true;
      p->wake.cancel();
    });
  });
  p->asking = {};
  // A grant comes on the same executor, so no wake-up is lost between the look and the wait.
  while (!p->there) {
    p->wake.expires_after(std::chrono::seconds(1));
    boost::system::error_code ignored;
    co_await p->wake.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (!p->there && abandoned()) co_return T{};
  }
  co_return std::move(p->what);
}

}  // namespace ooc::servers
