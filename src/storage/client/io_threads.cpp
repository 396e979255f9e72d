#include "storage/client/io_threads.hpp"

#include <algorithm>
#include <cassert>

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
  if (!questions_) questions_.emplace(1);
  const std::size_t n = servers_ % most_;
  if (n == running_.size()) {
    running_.reserve(most_);
    const auto r = std::make_shared<runner>();
    running_.emplace_back(r, std::thread([r] { r->context.run(); }));
  }
  ++servers_;  // not where a thread could not be made: the next one tries again
  return running_[n].first->context;
}

bool io_threads::is_one_of_them() const {
  const lock_guard lock(mutex_);
  return std::any_of(running_.begin(), running_.end(),
                     [](const auto& r) { return r.second.get_id() == std::this_thread::get_id(); });
}

void io_threads::ask(std::function<void()> question) {
  const lock_guard lock(mutex_);
  assert(questions_);
  questions_->post(std::move(question));
}

}  // namespace ooc::storage
