#include "storage/client/capability_renewal.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/notice.hpp"

namespace ooc::storage {

namespace {

constexpr std::chrono::seconds retry_pause{5};

}  // namespace

class capability_renewal::capability final : public access_capability {
 public:
  explicit capability(granted_capability g) { set(std::move(g), 0); }

  std::string bytes() const override {
    const lock_guard lock(mutex_);
    return bytes_;
  }
  /// Takes the capability that was asked for when answers() was `known`; 0: at some time.  It does not replace one
  /// that has come since and is good for more of the file: answers may overtake each other while the file grows.
  void set(granted_capability g, std::uint64_t known) {
    const lock_guard lock(mutex_);
    if (answers_ != known && g.size < size_) return;
    ++answers_;
    bytes_ = std::move(g.bytes);
    renew_at_ = clock::now() + std::chrono::duration_cast<clock::duration>(g.life) / 2;
    size_ = g.size;
  }
  std::uint64_t answers() const {
    const lock_guard lock(mutex_);
    return answers_;
  }
  std::uint64_t size() const {
    const lock_guard lock(mutex_);
    return size_;
  }
  clock::time_point renew_at() const {
    const lock_guard lock(mutex_);
    return renew_at_;
  }
  void postpone(clock::duration by) {
    const lock_guard lock(mutex_);
    renew_at_ = clock::now() + by;
  }

 private:
  mutable mutex mutex_;
  std::string bytes_ OOC_GUARDED_BY(mutex_);
  std::uint64_t size_ OOC_GUARDED_BY(mutex_) = 0;
  std::uint64_t answers_ OOC_GUARDED_BY(mutex_) = 0;
  clock::time_point renew_at_ OOC_GUARDED_BY(mutex_);
};

capability_renewal::capability_renewal(renewal renew) : renew_(std::move(renew)) {}

capability_ptr capability_renewal::keep(file_id file, std::uint32_t rights, granted_capability granted) {
  const lock_guard lock(mutex_);
  if (capabilities_.size() >= prune_at_) {
    std::erase_if(capabilities_, [](const auto& t) { return t.second.expired(); });
    prune_at_ = 2 * capabilities_.size() + 64;
  }
  auto& place = capabilities_[{file, rights}];
  auto t = place.lock();
  if (t)
    t->set(std::move(granted), 0);
  else
    place = t = std::make_shared<capability>(std::move(granted));
  if (t->renew_at() < next_) ticker_.wake();
  return t;
}

capability_ptr capability_renewal::keep_for_later(file_id file, std::uint32_t rights) {
  constexpr std::chrono::hours years{24 * 365 * 10};
  return keep(file, rights, {.bytes = {}, .life = years, .size = 0});
}

std::pair<std::uint32_t, std::shared_ptr<capability_renewal::capability>> capability_renewal::find(
    file_id file, std::uint32_t rights) const {
  const lock_guard lock(mutex_);
  for (auto i = capabilities_.lower_bound({file, 0}); i != capabilities_.end() && i->first.first == file; ++i)
    if ((i->first.second & rights) == rights)
      if (auto t = i->second.lock()) return {i->first.second, std::move(t)};
  return {};
}

capability_ptr capability_renewal::in_use(file_id file, std::uint32_t rights) const {
  return find(file, rights).second;
}

capability_ptr capability_renewal::in_use(file_id file, std::uint32_t rights, std::uint64_t size) {
  const auto [has, t] = find(file, rights);
  if (!t || t->size() >= size) return t;
  const std::uint64_t known = t->answers();
  t->set(renew_(file, has), known);
  return t;
}

// Renews the one that is due first, if it is.
ticker::clock::time_point capability_renewal::renew_due() {
  std::shared_ptr<capability> due;
  std::pair<file_id, std::uint32_t> what;
  {
    const lock_guard lock(mutex_);
    next_ = ticker::when_woken;
    for (const auto& [key, held] : capabilities_) {
      auto t = held.lock();
      if (!t || t->renew_at() >= next_) continue;
      next_ = t->renew_at();
      due = std::move(t);
      what = key;
    }
    if (next_ > clock::now()) return next_;
  }
  const std::uint64_t known = due->answers();
  try {
    due->set(renew_(what.first, what.second), known);
  } catch (const error& e) {
    // The one in hand may still do, see above; the I/O server says so where it does not.
    notice("renewing the right to file number " + std::to_string(what.first) + ": " + e.what());
    due->postpone(retry_pause);
  }
  return clock::now();  // another may be due
}

}  // namespace ooc::storage
