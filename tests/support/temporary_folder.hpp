// A folder that is gone with its test.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace ooc::testing {

class temporary_folder {
 public:
  temporary_folder() : temporary_folder(std::filesystem::temp_directory_path()) {}
  explicit temporary_folder(const std::filesystem::path& where) {
    std::string name = (where / "oocarray-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// A place for little that is to be durable in name only: where there is none, it waits for the disk with each sync.
inline std::filesystem::path folder_in_memory() {
  const char* const shared = "/dev/shm";
  return ::access(shared, W_OK | X_OK) == 0 ? std::filesystem::path(shared) : std::filesystem::temp_directory_path();
}

}  // namespace ooc::testing
