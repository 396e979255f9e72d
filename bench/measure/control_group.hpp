// A control group of the kernel for one child, which is removed with this object.
#pragma once

#include <filesystem>
#include <string>

namespace bench {

/// False where the kernel does not take it.
bool put(const std::filesystem::path& file, const std::string& text);

class control_group {
 public:
  control_group() = default;
  ~control_group();
  control_group(const control_group&) = delete;
  control_group& operator=(const control_group&) = delete;

  /// Makes one below `parent`, and puts `limit` into its file `name`.  False, and there is none, where that cannot be.
  bool make(const std::filesystem::path& parent, const std::string& name, const std::string& limit);
  bool active() const noexcept { return !folder_.empty(); }
  /// Moves the calling process, which must have one thread, into the group; nothing where there is none.
  void enter() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace bench
