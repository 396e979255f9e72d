#include "daemon/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "oocarray/error.hpp"

namespace ooc::servers {

storage::file_descriptor lock_folder(const std::filesystem::path& folder,
                                     const std::string& owner) {
  const auto failed = [&](const char* what) {
    return io_error({errno, std::generic_category()},
                    "folder '" + folder.string() + "' cannot be " + what);
  };
  storage::file_descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw failed("opened");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) throw failed("locked");
  throw usage_error(errc::busy, "folder '" + folder.string() + "' is in use by another " + owner +
                                    "; stop that first");
}

}  // namespace ooc::servers
