// A disk that loses its power: a file system of its own in an image file, which is shut down in the middle
// (EXT4_IOC_SHUTDOWN without flushing its log: from then on nothing reaches the image, what was not written there is
// gone).  Mounted again, what was durable is there.
//
// The machine goes on, so its boot id is made another by a file mounted over it.
#pragma once

#include <filesystem>

#include "attack/round.hpp"

namespace ooc::attack {

class disk_with_power {
 public:
  /// In the round's folder.  Throws a finding (not run) where this machine cannot have it.
  explicit disk_with_power(round& r);

  std::filesystem::path folder() const { return disk_; }
  /// Mounts it, in the next boot of this process and its children.
  void switch_on();
  /// Nothing reaches it from now on.
  void cut_power();
  /// After everybody who used it has ended.
  void unmount();

 private:
  round& r_;
  std::filesystem::path image_, disk_;
  std::uint64_t boot_ = 0;
};

}  // namespace ooc::attack
