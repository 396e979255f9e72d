// The folder in which a benchmark works, and the page cache over its files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace bench {

/// A new folder below `base`, removed with all that is in it by the destructor.
class scratch_folder {
 public:
  /// Throws std::system_error.
  explicit scratch_folder(const std::filesystem::path& base);
  ~scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// /var/tmp, or the current folder where that lies in memory.
std::filesystem::path default_base();

/// Throws std::runtime_error with both sizes where the disk has less room than `bytes`.
void require_space(const std::filesystem::path& folder, std::uint64_t bytes);

/// Writes back and drops what the page cache holds of a file, or of all files below a folder.  Needs
/// no privilege.
void drop_cache(const std::filesystem::path& what);

/// An empty folder below `dir` (what was there is removed).
std::filesystem::path fresh_folder(const std::filesystem::path& dir, const std::string& name);

}  // namespace bench
