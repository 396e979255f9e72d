// Whose turn it is: requests of all clients, a bounded number of them running.
//
// Clients take turns; a turn is worth a quantum of bytes (deficit round robin), so that the small
// reads of one do not wait for the large scan of another.  The waiting requests of one client are
// taken in the order of file and offset, round and round (C-SCAN), so that scattered requests for
// one file become sweeps.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace ooc::iod {

class fair_queue {
 public:
  using place = std::pair<std::uint64_t, std::uint64_t>;  ///< file, offset in the share

  /// A job is called when its turn has come and must call `finished` once, then or later, on any
  /// thread; or throw before it has given that to anybody.
  using job = std::function<void(std::function<void()> finished)>;

  /// Called in place of `finished`, with why, where the job has thrown.  What it throws is logged.
  using failing = std::function<void(const std::exception&)>;

  /// `running`: jobs at a time.
  explicit fair_queue(unsigned running) : slots_(running) {}

  /// `cost` in bytes.
  void add(const std::string& client, place where, std::uint64_t cost, job j, failing failed);

  std::uint64_t waiting() const;
  std::uint64_t running() const;

 private:
  struct waiting_job {
    std::uint64_t cost;
    job run;
    failing failed;
  };
  struct client_queue {
    std::string name;
    std::multimap<place, waiting_job> jobs;
    place last{};
    std::uint64_t credit = 0;
  };

  void dispatch(std::unique_lock<std::mutex> lock);
  bool next(waiting_job& out);

  const unsigned slots_;
  mutable std::mutex mutex_;
  std::list<client_queue> ring_;  // clients with waiting jobs; the front one has the turn
  std::map<std::string, std::list<client_queue>::iterator> by_name_;
  std::uint64_t waiting_ = 0;
  unsigned running_ = 0;
  bool dispatching_ = false;
};

}  // namespace ooc::iod
