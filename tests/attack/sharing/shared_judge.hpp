// Whether calls gave what they may, and what the files may hold after them.
#pragma once

#include "attack/sharing/shared_world.hpp"

namespace ooc::attack {

class shared_judge {
 public:
  explicit shared_judge(shared_world& w) : w_(w) {}

  /// One call or two at once, all of one file.  Throws a finding for what a call gives and may not.
  void bytes_and_size(shared_file& f, const std::vector<deed*>& deeds);
  /// The files that the program has open after its call.
  void handles_after(const deed& d, bool beside_another);
  /// Asks for the size, where there is a doubt about it, and reads everything; by a new opening where the program of
  /// the last of these calls has not got it open, and sometimes by the program that came after a kill.
  void settle(const file_ptr& f, const std::vector<deed*>& deeds, bool killed);
  void open_and_read(std::size_t p, std::uint32_t slot);

 private:
  void check(shared_file& f, const deed& d, const std::vector<shared_content>& met);
  void compare(const shared_file& f, const deed& d, const std::vector<extent>& where,
               const std::vector<shared_content>& met);
  [[noreturn]] void differs(const shared_file& f, const deed& d, extent e, const std::byte* got, write_number expected);
  void ask_size(std::size_t p, std::uint32_t slot);
  void read_all(std::size_t p, std::uint32_t slot);
  deed reading(std::size_t p, std::uint32_t slot, std::uint64_t offset, std::uint64_t length);
  void mend_torn(std::size_t p, std::uint32_t slot);

  shared_world& w_;
};

}  // namespace ooc::attack
