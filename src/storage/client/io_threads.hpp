// The threads of a client for all its I/O servers: each runs an io_context, and each server belongs to one of them.
//
// So whatever happens to one server's connections happens on one thread.  What is received is copied, decrypted and
// checked there, 1.5 to 4 GB a second: one thread for all servers would be slower than what many of them send.  There
// are as many threads as processors, at least 2 and at most 8, which is what a link of 100 Gbit/s needs; a thread is
// made with the first server that it gets.  What waits for the metadata server (ask()) has a thread of its own, made
// with the first server, so that no transfer waits with it.
//
// Owner: the clients of the servers, together.  The last of them may go on one of the threads.  Threads: any.
#pragma once

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "storage/base/job_threads.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::storage {

class io_threads {
 public:
  io_threads() = default;
  ~io_threads();
  io_threads(const io_threads&) = delete;
  io_threads& operator=(const io_threads&) = delete;

  /// For one more server; there as long as this.  Throws std::system_error where no thread can be made.
  boost::asio::io_context& for_a_server();
  /// The caller runs on one of the threads of servers.
  bool is_one_of_them() const;
  /// Runs `question`, of one of these servers, after those before it.
  void ask(std::function<void()> question);

 private:
  struct runner {
    boost::asio::io_context context{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{context.get_executor()};
  };

  const std::size_t most_ = std::clamp(std::thread::hardware_concurrency(), 2U, 8U);
  mutable mutex mutex_;
  std::size_t servers_ OOC_GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<std::shared_ptr<runner>, std::thread>> running_ OOC_GUARDED_BY(mutex_);
  std::optional<job_threads<>> questions_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
