// io_stats of a node, counted by many threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "oocarray/stats.hpp"

namespace ooc::storage {

class node_counters {
 public:
  void add(std::uint64_t io_stats::*counter, std::uint64_t n) noexcept;
  io_stats snapshot() const noexcept;

 private:
  static constexpr std::size_t count = sizeof(io_stats) / sizeof(std::uint64_t);
  std::atomic<std::uint64_t> values_[count] = {};
};

}  // namespace ooc::storage
