#include "daemon/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::servers {

storage::file_descriptor lock_folder(const std::filesystem::path& folder, const std::string& owner) {
  const auto failed = [&](const char* what) {
    return io_error({errno, std::generic_category()}, "folder '" + folder.string() + "' cannot be " + what);
  };
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) throw io_error(ec, "folder '" + folder.string() + "' cannot be made");
  storage::file_descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw failed("opened");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) throw failed("locked");
  throw usage_error(errc::busy, "folder '" + folder.string() + "' is in use by another " + owner + "; stop that first");
}

void refuse_strangers(const std::filesystem::path& folder, const std::string& owner, const std::string& unfinished) {
  for (const auto& stranger : std::filesystem::directory_iterator(folder))
    if (const auto name = stranger.path().filename(); name != "lost+found" && name != unfinished)
      refuse_folder(folder.native(), "is not that of " + owner + " and not empty (it holds '" + name.string() +
                                         "'); name such a folder, or a new or empty one");
}

namespace {

void close_one(const std::filesystem::path& path, const std::filesystem::path& folder) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return;
    throw io_error({errno, std::generic_category()}, "'" + path.string() + "' cannot be looked at");
  }
  if (S_ISLNK(st.st_mode) || (st.st_mode & 077) == 0) return;
  if (::fchmodat(AT_FDCWD, path.c_str(), st.st_mode & 0700, AT_SYMLINK_NOFOLLOW) == 0) return;
  throw usage_error({errno, std::generic_category()},
                    "'" + path.string() + "' is open to other users of this host and belongs to user " +
                        std::to_string(st.st_uid) + ", not to user " + std::to_string(::geteuid()) +
                        ": start the server as its owner, or give the folder to this user (chown -R " +
                        std::to_string(::geteuid()) + " " + folder.string() + ")");
}

}  // namespace

void close_to_others(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  struct stat st {};
  if (::stat(folder.c_str(), &st) == 0 && (st.st_mode & 077) == 0) return;
  std::error_code ec;
  fs::recursive_directory_iterator at(folder, ec);
  for (; !ec && at != fs::recursive_directory_iterator(); at.increment(ec)) {
    if (at.depth() == 0 && at->path().filename() == "lost+found") {
      at.disable_recursion_pending();
      continue;
    }
    close_one(at->path(), folder);
  }
  if (ec) throw io_error(ec, "folder '" + folder.string() + "' cannot be read");
  close_one(folder, folder);
}

}  // namespace ooc::servers
