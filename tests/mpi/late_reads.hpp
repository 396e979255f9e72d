// An I/O node whose reads are done at once and answered late: what a program sees of a slow
// network.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "support/forwarded_node.hpp"

namespace ooc::testing {

/// Thread-safe.  Answers still held at the end are given then.
class late_reads final : public forwarded_node {
 public:
  using forwarded_node::forwarded_node;
  ~late_reads() override { release(); }

  /// Holds the answers of reads that end from now on.
  void hold() {
    const std::lock_guard lock(mutex_);
    holding_ = true;
  }
  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  /// Gives the answers that are held, and those to come at once.
  void release() {
    std::vector<std::function<void()>> answers;
    {
      const std::lock_guard lock(mutex_);
      holding_ = false;
      answers.swap(held_);
    }
    for (const auto& answer : answers) answer();
  }

  void answer(storage::node_call call, storage::completion done) override {
    if (call.kind != storage::io_kind::read) return forwarded_node::answer(std::move(call), std::move(done));
    forwarded_node::answer(std::move(call), [this, done = std::move(done)](const failure& f) {
      {
        const std::lock_guard lock(mutex_);
        if (holding_) {
          held_.push_back([done, f] { done(f); });
          return;
        }
      }
      done(f);
    });
  }

 private:
  mutable std::mutex mutex_;
  bool holding_ = false;
  std::vector<std::function<void()>> held_;
};

}  // namespace ooc::testing
