// Which file has which name after a call that makes, renames, replaces or removes one.
#pragma once

#include "attack/sharing/shared_judge.hpp"

namespace ooc::attack {

class shared_names {
 public:
  shared_names(shared_world& w, shared_judge& j) : w_(w), judge_(j) {}

  static bool changed_by(action a) noexcept {
    return a == action::create || a == action::remove || a == action::rename || a == action::replace;
  }
  /// Throws a finding where the call did what it may not.
  void after(deed& d);
  /// Asks which of these files has the name (null: none).  One without a number has just been made.
  void identify(std::uint32_t slot, const std::vector<file_ptr>& may);

 private:
  /// A name stays taken for a while after the death of who was making a file of that name.
  void wait_for_maker(deed& d) const;
  /// `gone`: what the call takes away.  A file for which somebody reserves space stays until that one has closed it.
  bool refused(deed& d, const file_ptr& source, const file_ptr& gone);
  void close_everywhere(const file_ptr& f);

  shared_world& w_;
  shared_judge& judge_;
};

}  // namespace ooc::attack
