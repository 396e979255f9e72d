// The next step of a program, by chance.
#pragma once

#include "attack/sharing/shared_world.hpp"

namespace ooc::attack {

class shared_draws {
 public:
  explicit shared_draws(shared_world& w) : w_(w) {}

  deed opening(std::size_t p, std::uint32_t slot);
  deed creation(std::size_t p, std::uint32_t slot);
  /// To another name; of two at least.
  deed renaming(std::size_t p, std::uint32_t slot);
  /// Reads, writes, cuts off, syncs or asks for the size.  `alone`: the size is what it was when the call is made.
  deed any_transfer(std::size_t p, std::uint32_t slot, bool alone);

 private:
  std::uint64_t any_offset(const shared_file& f);
  std::uint64_t any_length(std::uint64_t offset, std::uint64_t greatest);
  void extend(deed& d, action what);
  void stride(deed& d, action what);
  void list(deed& d);
  void on_board(deed& d);

  shared_world& w_;
};

}  // namespace ooc::attack
