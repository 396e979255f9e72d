// sync() and sync_halo(): every rank writes back, tells the others which blocks it wrote (the write
// notices), and forgets what they wrote.  In the checking mode it also tells which elements it
// accessed, and all look for conflicts.
//
// Owner: made for one call, and refers to the array.  Collective: what one rank throws, all throw.
// Threads: one, with no other use of the array meanwhile.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

class write_exchange {
 public:
  explicit write_exchange(shared_array& array) noexcept : array_(array) {}

  /// As in array_ranks.
  void sync(durability d);
  void sync_halo(std::size_t rows);
  /// What is left of sync() for an array that closes, in the checking mode: nobody looks at it any
  /// more.
  void check_last();

 private:
  using notices = std::vector<process_group::bytes>;  ///< one from each rank

  std::vector<block_range> halo_blocks(std::size_t rows) const;
  notices exchange_writes(const std::string& call, std::span<const block_range> which);
  void take_in(const std::string& call, const notices& told);
  void forget_others_writes(const std::string& call, const notices& told);
  void report_conflicts(const notices& told) const;

  shared_array& array_;
};

}  // namespace ooc::detail
