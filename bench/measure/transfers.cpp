#include "measure/transfers.hpp"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "measure/stopwatch.hpp"

namespace bench {

using ooc::failure;
using namespace ooc::storage;

namespace {

/// Counts what is in flight.
class flight {
 public:
  void start(unsigned depth) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ < depth; });
    ++running_;
  }
  void end(const failure& f) {
    const std::lock_guard lock(mutex_);
    if (f && !first_) first_ = f;
    --running_;
    changed_.notify_one();
  }
  failure finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0; });
    return first_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned running_ = 0;
  failure first_;
};

}  // namespace

double transfer_seconds(const striped_file& file, transfer what, std::span<const request_ptr> requests,
                        std::span<std::byte> memory, std::size_t slot, unsigned depth) {
  const std::size_t slots = memory.size() / slot;
  flight f;
  const stopwatch time;
  for (std::size_t k = 0; k < requests.size(); ++k) {
    f.start(depth);
    std::byte* const place = memory.data() + k % slots * slot;
    const auto done = [&f](const failure& why) { f.end(why); };
    if (what == transfer::read)
      file.read(requests[k], place, done);
    else
      file.write(requests[k], place, done);
  }
  ooc::throw_if(f.finish());
  return time.seconds();
}

std::vector<request_ptr> contiguous_requests(std::uint64_t bytes, std::uint64_t each) {
  std::vector<request_ptr> all;
  for (std::uint64_t at = 0; at < bytes; at += each)
    all.push_back(std::make_shared<const ooc::request>(ooc::request::contiguous(at, std::min(each, bytes - at))));
  return all;
}

}  // namespace bench
