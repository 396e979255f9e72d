// An I/O node that misbehaves on purpose: a decorator for tests of every layer above.
//
// Rules say which calls are hit and what happens to them; a call is hit by the first rule that
// fits. Everything is counted.  With the same seed and the same order of calls, chance falls the
// same way.
//
// Any thread may call anything.  Delayed and held calls are forwarded from a thread of the
// decorator; destruction releases what is held and waits for what is delayed, not for calls already
// forwarded.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

#include "storage/service/io_service.hpp"

namespace ooc::storage {

struct fault_rule {
  io_kind call = io_kind::read;
  /// The call of this kind that is hit, from 1, counted since the decorator was made; 0: any.
  std::uint64_t nth = 0;
  /// How many calls the rule hits before it is used up; 0: no limit.
  std::uint64_t times = 0;
  double probability = 1;  ///< of being hit, for each call that fits

  // Effects; several may be combined.
  std::chrono::microseconds delay{0};  ///< before the call is forwarded
  bool hold = false;                   ///< until release()
  std::error_code error{};             ///< the call fails with this
  /// Reads and writes with an error: only the first so many regions on the node are transferred.
  /// Nothing: the call is not forwarded at all.
  std::optional<std::uint64_t> regions_before_error{};
  bool error_after = false;  ///< forwarded in full, then reported as failed
  bool flip = false;         ///< a bit of the first region is flipped on its way
};

class faulty_io_service final : public io_service {
 public:
  explicit faulty_io_service(std::shared_ptr<io_service> inner, std::uint64_t seed = 1);
  ~faulty_io_service() override;

  void add(const fault_rule& rule);
  /// Forgets all rules; what is held stays held.
  void clear();
  /// Lets all held calls go on.
  void release();

  std::uint64_t calls(io_kind kind) const;  ///< made so far
  std::uint64_t hits(io_kind kind) const;   ///< of these: hit by a rule
  std::uint64_t held() const;               ///< calls that wait for release()

  void answer(node_call call, completion done) override;
  std::string name() const override { return inner_->name(); }
  io_stats stats() const override { return inner_->stats(); }
  std::uint64_t staging_bytes() const override { return inner_->staging_bytes(); }

 private:
  using action = std::function<void()>;
  using clock = std::chrono::steady_clock;

  std::optional<fault_rule> count(io_kind kind);
  void dispatch(const std::optional<fault_rule>& rule, action go);
  failure injected(io_kind kind, const std::optional<fault_rule>& rule) const;
  void run_delayed();

  const std::shared_ptr<io_service> inner_;
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  std::deque<fault_rule> rules_;
  std::array<std::uint64_t, io_kinds> calls_{};
  std::array<std::uint64_t, io_kinds> hits_{};
  std::vector<action> held_;
  std::multimap<clock::time_point, action> delayed_;
  std::condition_variable changed_;
  std::thread timer_;  // started by the first delay or hold
  bool stopping_ = false;
};

}  // namespace ooc::storage
