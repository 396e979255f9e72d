#include "storage/client/io_threads.hpp"

#include <algorithm>

namespace ooc::storage {

io_threads::~io_threads() {
  for (auto& [r, thread] : running_) {
    r->work.reset();
    if (thread.get_id() == std::this_thread::get_id())
      thread.detach();
    else
      thread.join();
  }
}

boost::asio::io_context& io_threads::for_a_server() {
  const lock_guard lock(mutex_);
  const std::size_t n = servers_++ % std::clamp(std::thread::hardware_concurrency(), 2U, 8U);
  if (n == running_.size()) {
    const auto r = std::make_shared<runner>();
    running_.emplace_back(r, std::thread([r] { r->context.run(); }));
  }
  return running_[n].first->context;
}

void io_threads::ask(std::function<void()> question) {
  const lock_guard lock(mutex_);
  if (!questions_) questions_.emplace(1);
  questions_->post(std::move(question));
}

}  // namespace ooc::storage
