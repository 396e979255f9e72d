// In which order the requests of many clients are served: one scheduler for the queue of an I/O node
// and for the calls to a metadata server.
//
// Deficit round robin (Shreedhar and Varghese, 1995) at two levels.  Users take turns; within the turns
// of a user the processes that act for it do.  A turn is worth a quantum of cost, so that the small
// requests of one do not wait for the large ones of another, nor for how many there are of them.  The
// waiting requests of one process are taken in the order of their places, round and round (C-SCAN), so
// that scattered requests for one file become sweeps; equal places in the order in which they came.
//
// Invariants: a user is in the ring while one of its processes is in the user's ring, a process while it
// has requests that wait.  Not thread-safe: it belongs to the lock, or the thread, of its owner.
#pragma once

#include <cassert>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory_resource>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <utility>

#include "storage/base/invariants.hpp"

namespace ooc::storage {

/// The client that made a request: a user, and one of the processes that act for it.  Zeros: the process that the
/// scheduler is in.
struct client_number {
  std::uint64_t user = 0;
  std::uint64_t process = 0;  ///< not used for another user's

  bool operator==(const client_number&) const = default;
};

/// For whom a node does something.
struct request_origin {
  client_number client;
  std::stop_token gone;  ///< stopped: nobody waits for it; what has not begun ends with ECANCELED
};

template <class Job>
class request_scheduler {
 public:
  using place = std::pair<std::uint64_t, std::uint64_t>;  ///< file, offset in its stripe object

  /// A request costs `least` beside what add() says.
  request_scheduler(std::uint64_t quantum, std::uint64_t least) : quantum_(quantum), least_(least) {}

  /// Takes `job`; leaves it where it is if memory is wanting (std::bad_alloc).
  void add(client_number who, place where, std::uint64_t cost, Job&& job) {
    const invariants_hold at_end(*this);
    try {
      process_of(who).jobs.emplace(where, waiting_job{cost + least_, {}})->second.job = std::move(job);
    } catch (...) {
      drop_idle();
      throw;
    }
    ++waiting_;
  }

  /// The request whose turn it is; none where none waits.
  std::optional<Job> next() {
    const invariants_hold at_end(*this);
    while (!users_.empty()) {
      user& u = users_.front();
      process& p = u.processes.front();
      auto at = p.jobs.lower_bound(p.last);
      if (at == p.jobs.end()) at = p.jobs.begin();
      const std::uint64_t cost = at->second.cost;
      if (!has_credit(u, cost)) {
        users_.splice(users_.end(), users_, users_.begin());
      } else if (!has_credit(p, cost)) {
        u.processes.splice(u.processes.end(), u.processes, u.processes.begin());
      } else {
        u.credit -= cost;
        p.credit -= cost;
        p.last = {at->first.first, at->first.second + 1};
        std::optional<Job> job(std::move(at->second.job));
        p.jobs.erase(at);
        --waiting_;
        if (p.jobs.empty()) leave(u, p);
        return job;
      }
    }
    return {};
  }

  std::uint64_t waiting() const noexcept { return waiting_; }
  bool empty() const noexcept { return waiting_ == 0; }

#ifndef NDEBUG
  /// Asserts what the class states.
  void check_invariants() const {
    std::uint64_t waiting = 0;
    std::size_t processes = 0;
    for (const user& u : users_) {
      assert(!u.processes.empty() && users_by_number_.count(u.number) == 1);
      for (const process& p : u.processes) {
        assert(!p.jobs.empty() && by_number_.count(p.number) == 1);
        waiting += p.jobs.size();
        ++processes;
      }
    }
    assert(waiting == waiting_ && users_.size() == users_by_number_.size() && processes == by_number_.size());
  }
#endif

 private:
  struct waiting_job {
    std::uint64_t cost;
    Job job;
  };
  struct turn {
    explicit turn(std::uint64_t n) : number(n) {}
    std::uint64_t number;
    std::uint64_t credit = 0;
    bool begun = false;  // it has had the quantum of the present turn
  };
  using memory = std::pmr::memory_resource;
  struct process : turn {
    process(std::uint64_t n, memory* m) : turn(n), jobs(m) {}
    std::pmr::multimap<place, waiting_job> jobs;
    place last{};
  };
  using process_list = std::list<process, std::pmr::polymorphic_allocator<process>>;
  struct user : turn {
    user(std::uint64_t n, memory* m) : turn(n), processes(m) {}
    process_list processes;  // the front one has the user's turn
  };
  using user_list = std::list<user, std::pmr::polymorphic_allocator<user>>;

  // True while the one at the front can pay; false ends its turn.
  bool has_credit(turn& t, std::uint64_t cost) const noexcept {
    if (t.credit < cost && !std::exchange(t.begun, true)) t.credit += quantum_;
    if (t.credit < cost) t.begun = false;
    return t.credit >= cost;
  }

  user& user_of(std::uint64_t number) {
    const auto known = users_by_number_.find(number);
    if (known != users_by_number_.end()) return *known->second;
    users_.emplace_back(number, &nodes_);
    users_by_number_.emplace(number, std::prev(users_.end()));
    return users_.back();
  }

  process& process_of(client_number who) {
    if (const auto at = by_number_.find(who.process); at != by_number_.end()) return *at->second;
    process_list& all = user_of(who.user).processes;
    all.emplace_back(who.process, &nodes_);
    return *by_number_.emplace(who.process, std::prev(all.end())).first->second;
  }

  // Drops the processes that came with a request for which memory was wanting, and their users.
  void drop_idle() noexcept {
    for (auto u = users_.begin(); u != users_.end();) {
      u->processes.remove_if([this](const process& p) {
        if (p.jobs.empty()) by_number_.erase(p.number);
        return p.jobs.empty();
      });
      if (u->processes.empty()) users_by_number_.erase(u->number);
      u = u->processes.empty() ? users_.erase(u) : std::next(u);
    }
  }

  // The one at the front has nothing more to do.
  void leave(user& u, process& p) {
    by_number_.erase(p.number);
    u.processes.pop_front();
    if (!u.processes.empty()) return;
    users_by_number_.erase(u.number);
    users_.pop_front();
  }

  const std::uint64_t quantum_;
  const std::uint64_t least_;
  // Clients come and go with each of their requests: what one leaves behind serves the next.
  std::pmr::unsynchronized_pool_resource nodes_;
  user_list users_{&nodes_};  // the front one has the turn
  std::pmr::unordered_map<std::uint64_t, typename user_list::iterator> users_by_number_{&nodes_};
  std::pmr::unordered_map<std::uint64_t, typename process_list::iterator> by_number_{&nodes_};
  std::uint64_t waiting_ = 0;
};

}  // namespace ooc::storage
