// What one client may hold of something that all share, in bytes: what it wants beyond waits, in
// order, until it has given some back.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace ooc::iod {

class allowance : public std::enable_shared_from_this<allowance> {
 public:
  /// Bytes that are held; given back with the last copy of it.
  using claim = std::shared_ptr<const void>;

  explicit allowance(std::uint64_t limit) : left_(limit) {}

  /// Calls `go` with a claim to `bytes` (at most the limit), at once or when others have come back,
  /// then in the thread that gives them back; first come, first served.
  void take(std::uint64_t bytes, std::function<void(claim)> go);

 private:
  struct waiter {
    std::uint64_t bytes;
    std::function<void(claim)> go;
  };

  claim claim_to(std::uint64_t bytes);
  void give_back(std::uint64_t bytes);

  std::mutex mutex_;
  std::uint64_t left_;
  std::deque<waiter> waiting_;
};

}  // namespace ooc::iod
