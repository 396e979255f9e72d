#include "storage/remote/remote_tickets.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/notice.hpp"

namespace ooc::storage {

namespace {

constexpr std::chrono::seconds retry_pause{5};

}  // namespace

class remote_tickets::ticket final : public access_ticket {
 public:
  explicit ticket(granted_ticket g) { set(std::move(g)); }

  std::string bytes() const override {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  void set(granted_ticket g) {
    const std::lock_guard lock(mutex_);
    bytes_ = std::move(g.bytes);
    renew_at_ = clock::now() + std::chrono::duration_cast<clock::duration>(g.life) / 2;
    size_ = g.size;
  }
  std::uint64_t size() const {
    const std::lock_guard lock(mutex_);
    return size_;
  }
  clock::time_point renew_at() const {
    const std::lock_guard lock(mutex_);
    return renew_at_;
  }
  void postpone(clock::duration by) {
    const std::lock_guard lock(mutex_);
    renew_at_ = clock::now() + by;
  }

 private:
  mutable std::mutex mutex_;
  std::string bytes_;
  std::uint64_t size_ = 0;
  clock::time_point renew_at_;
};

remote_tickets::remote_tickets(renewal renew) : renew_(std::move(renew)) {}

remote_tickets::~remote_tickets() {
  stop();
}

void remote_tickets::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

ticket_ptr remote_tickets::keep(file_id file, std::uint32_t rights, granted_ticket granted) {
  const std::lock_guard lock(mutex_);
  if (tickets_.size() >= prune_at_) {
    std::erase_if(tickets_, [](const auto& t) { return t.second.expired(); });
    prune_at_ = 2 * tickets_.size() + 64;
  }
  auto& place = tickets_[{file, rights}];
  auto t = place.lock();
  if (t)
    t->set(std::move(granted));
  else
    place = t = std::make_shared<ticket>(std::move(granted));
  if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { run(); });
  if (t->renew_at() < next_) wake_.notify_all();
  return t;
}

std::pair<std::uint32_t, std::shared_ptr<remote_tickets::ticket>> remote_tickets::find(
    file_id file, std::uint32_t rights) const {
  const std::lock_guard lock(mutex_);
  for (auto i = tickets_.lower_bound({file, 0}); i != tickets_.end() && i->first.first == file; ++i)
    if ((i->first.second & rights) == rights)
      if (auto t = i->second.lock()) return {i->first.second, std::move(t)};
  return {};
}

ticket_ptr remote_tickets::in_use(file_id file, std::uint32_t rights) const {
  return find(file, rights).second;
}

ticket_ptr remote_tickets::in_use(file_id file, std::uint32_t rights, std::uint64_t size) {
  const auto [has, t] = find(file, rights);
  if (t && t->size() < size) t->set(renew_(file, has));
  return t;
}

void remote_tickets::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    next_ = clock::time_point::max();
    std::shared_ptr<ticket> due;
    std::pair<file_id, std::uint32_t> what;
    for (const auto& [key, held] : tickets_) {
      auto t = held.lock();
      if (!t || t->renew_at() >= next_) continue;
      next_ = t->renew_at();
      due = std::move(t);
      what = key;
    }
    if (!due) {
      wake_.wait(lock);
      continue;
    }
    if (next_ > clock::now()) {
      due.reset();
      wake_.wait_until(lock, next_);
      continue;
    }
    lock.unlock();
    try {
      due->set(renew_(what.first, what.second));
    } catch (const error& e) {
      // The one in hand may still do, see above; the I/O server says so where it does not.
      notice("renewing the right to file number " + std::to_string(what.first) + ": " + e.what());
      due->postpone(retry_pause);
    }
    due.reset();
    lock.lock();
  }
}

}  // namespace ooc::storage
