// A client's verdict on a server's silence, one for all callers that wait for the server.
//
// An outage begins when somebody waits and nothing comes from the server, and ends when anything does.
// After the deadline the server counts as gone: calls that wait, and calls that come later, fail.  So a program
// that makes many requests waits once.  Time in which the program itself was stopped (Ctrl-Z, a debugger, a virtual
// machine that was paused) is none of the server's fault.  Guarded by its owner.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "storage/base/notice.hpp"

namespace ooc::storage {

class outage {
 public:
  using clock = std::chrono::steady_clock;

  /// Whoever is later than this has been stopped.
  static constexpr std::chrono::seconds was_stopped{1};

  explicit outage(clock::duration deadline) : deadline_(deadline) {}

  /// Somebody has been waiting since then; what an earlier one said stays.
  void missed(clock::time_point since) {
    if (!since_) since_ = since;
  }
  /// Something came, or is on its way.  `waiting`: somebody still waits for more.  True where its absence was
  /// spoken of.
  bool heard(clock::time_point now, bool waiting) {
    since_ = waiting ? std::optional(now) : std::nullopt;
    gone_ = false;
    return std::exchange(said_, false);
  }

  /// The program did not run for that long: what should have been done before `now` comes only now.
  void stopped_for(clock::duration time, clock::time_point now) {
    if (since_) since_ = std::min(now, *since_ + time);
  }

  /// Everybody has been answered: silence is none of the server's fault from now on.
  void nobody_waits() {
    if (!gone_) since_.reset();
  }

  bool begun() const noexcept { return since_.has_value(); }
  /// When it becomes a verdict; the maximum where nobody waits.
  clock::time_point end() const { return since_ ? *since_ + deadline_ : clock::time_point::max(); }
  clock::duration deadline() const noexcept { return deadline_; }
  clock::duration lasts(clock::time_point now) const { return since_ ? now - *since_ : clock::duration::zero(); }

  /// True from the deadline on until something is heard.
  bool gone() const noexcept { return gone_; }
  /// It will not come, as somebody knows who watches over it.
  void give_up() noexcept { gone_ = true; }
  bool judge(clock::time_point now) { return gone_ = gone_ || now >= end(); }

  /// When a line is to be said that it is waited for; the maximum where there is none to say.
  clock::time_point notice_at() const {
    return since_ && !said_ && !gone_ && deadline_ > notice_after ? *since_ + notice_after : clock::time_point::max();
  }
  /// Says it, once.  `who` and what for: "node 1 (host:port) to answer the read of 'a'".
  void say(const std::string& whom) {
    said_ = true;
    notice_of_many("waiting for " + whom + ", " + until_text(end(), deadline_));
  }

 private:
  const clock::duration deadline_;
  std::optional<clock::time_point> since_;
  bool gone_ = false;
  bool said_ = false;
};

}  // namespace ooc::storage
