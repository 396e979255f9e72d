#include "measure/scratch.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

namespace bench {

namespace fs = std::filesystem;

scratch_folder::scratch_folder(const fs::path& base) {
  fs::create_directories(base);
  std::string name = (fs::absolute(base) / "oocbench.XXXXXX").string();
  if (!::mkdtemp(name.data()))
    throw std::system_error(errno, std::generic_category(), "cannot make a folder in " + base.string());
  path_ = name;
}

scratch_folder::~scratch_folder() {
  std::error_code ec;
  fs::remove_all(path_, ec);
}

fs::path default_base() {
  struct statfs s = {};
  if (::access("/var/tmp", W_OK) == 0 && ::statfs("/var/tmp", &s) == 0 && s.f_type != TMPFS_MAGIC) return "/var/tmp";
  return fs::current_path();
}

void require_space(const fs::path& folder, std::uint64_t bytes) {
  const std::uint64_t have = fs::space(folder).available;
  if (have < bytes)
    throw std::runtime_error(folder.string() + " has " + std::to_string(have >> 20) + " MiB left, this case needs " +
                             std::to_string(bytes >> 20) +
                             " MiB; choose another place with --dir or a smaller --memory");
}

namespace {

void drop_file(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ::fdatasync(fd);  // dirty pages cannot be dropped
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

}  // namespace

void drop_cache(const fs::path& what) {
  if (!fs::is_directory(what)) return drop_file(what);
  for (const auto& entry : fs::recursive_directory_iterator(what))
    if (entry.is_regular_file()) drop_file(entry.path());
}

fs::path fresh_folder(const fs::path& dir, const std::string& name) {
  fs::remove_all(dir / name);
  fs::create_directories(dir / name);
  return dir / name;
}

}  // namespace bench
