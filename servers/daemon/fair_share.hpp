// So much of one thing (bytes of memory, connections), shared by clients.
//
// The size of a share: dynamic thresholds (Choudhury and Hahne, 1998) at two levels, with the factor 1.  A user may
// hold as much as nobody holds, so n users have 1/(n + 1) of it each and as much stays free for the next one; of what
// a user may hold beside what it holds, a process that acts for it may hold as much again.  Shares shrink by
// themselves as clients come, and what they held before comes back as they give it back.  A user that holds nothing
// gets what it asks for while there is room, as does a process within what its user may hold; outside a reserve of an
// eighth where it is large.  So everybody goes on, and a process that holds nothing has something small at once,
// whatever its user holds.
//
// A request that does not fit waits: the waiting processes take turns, each one's own requests in their order.
//
// Invariants: the claims that live add up to held(), which is at most limit() but for a single claim
// that is larger than that, and for take_now().  One mutex; `go` is called without it.  Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/service/request_scheduler.hpp"

namespace ooc::servers {

using storage::client_number;

class fair_share : public std::enable_shared_from_this<fair_share> {
 public:
  /// An amount that a client holds; it goes back when the claim goes.  An empty claim holds nothing.
  class claim {
   public:
    claim() = default;
    claim(claim&& o) noexcept { swap(o); }
    claim& operator=(claim&& o) noexcept {
      claim(std::move(o)).swap(*this);
      return *this;
    }
    ~claim() {
      if (of_) of_->give_back(who_, amount_);
    }

    explicit operator bool() const noexcept { return of_ != nullptr; }
    std::uint64_t amount() const noexcept { return amount_; }
    /// Gives back what is above `amount`.
    void shrink(std::uint64_t amount);

   private:
    friend fair_share;
    claim(std::shared_ptr<fair_share> of, client_number who, std::uint64_t amount)
        : of_(std::move(of)), who_(who), amount_(amount) {}
    void swap(claim& o) noexcept {
      of_.swap(o.of_);
      std::swap(who_, o.who_);
      std::swap(amount_, o.amount_);
    }

    std::shared_ptr<fair_share> of_;
    client_number who_;
    std::uint64_t amount_ = 0;
  };

  /// Amounts up to `small` may be taken from the reserve.
  explicit fair_share(std::uint64_t limit, std::uint64_t small = 0) : limit_(limit), small_(small) {}

  /// Calls `go` with the claim, at once or when others have given back, then in their thread.
  void take(client_number who, std::uint64_t amount, std::function<void(claim)> go);
  /// The claim if it can be had at once; else an empty one.
  claim try_take(client_number who, std::uint64_t amount);
  /// The claim in any case: for what is there already.
  claim take_now(client_number who, std::uint64_t amount);

  std::uint64_t limit() const noexcept { return limit_; }
  std::uint64_t held() const;
  std::uint64_t held_by(client_number who) const;
  /// True where the process holds more than it would be given now.
  bool above_share(client_number who) const;
  /// True while somebody waits.
  bool short_of() const;
  /// Asserts what the class states; the caller has the mutex.
  void check_invariants() const OOC_REQUIRES(mutex_);

 private:
  struct waiter {
    std::uint64_t amount;
    std::function<void(claim)> go;
  };
  struct holder {
    client_number who;
    std::uint64_t held = 0;
    std::deque<waiter> waiting;
  };
  struct granted {
    std::function<void(claim)> go;
    claim what;
  };

  holder& holder_of(client_number who) OOC_REQUIRES(mutex_);
  bool fits(const holder& h, std::uint64_t amount) const OOC_REQUIRES(mutex_);
  claim hold(holder& h, std::uint64_t amount) OOC_REQUIRES(mutex_);
  void forget(client_number who) OOC_REQUIRES(mutex_);
  void serve(std::vector<granted>& out) OOC_REQUIRES(mutex_);

  void give_back(client_number who, std::uint64_t amount) OOC_EXCLUDES(mutex_);

  const std::uint64_t limit_;
  const std::uint64_t small_;
  mutable mutex mutex_;
  std::uint64_t held_ OOC_GUARDED_BY(mutex_) = 0;
  // The amount that each user holds.
  std::unordered_map<std::uint64_t, std::uint64_t> users_ OOC_GUARDED_BY(mutex_);
  // Processes that hold or wait.
  std::unordered_map<std::uint64_t, holder> holders_ OOC_GUARDED_BY(mutex_);
  // Processes that wait, in turns.
  std::list<std::uint64_t> waiting_ OOC_GUARDED_BY(mutex_);
  bool serving_ OOC_GUARDED_BY(mutex_) = false;
};

}  // namespace ooc::servers
