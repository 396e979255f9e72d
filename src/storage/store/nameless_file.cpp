// Room beside a file in place, for an algorithm: a file without a name, as a store of its own.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "oocarray/error.hpp"
#include "oocarray/open_file.hpp"
#include "storage/node/plain_file_node.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/single_file.hpp"

namespace ooc::storage {
namespace {

/// None, and errno, where it cannot be made.
file_descriptor nameless_in(const std::string& folder) {
  file_descriptor f(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (f || (errno != EOPNOTSUPP && errno != EISDIR)) return f;
  std::string path = folder + "/.ooc-XXXXXX";  // the file system has no files without a name
  f = file_descriptor(::mkostemp(path.data(), O_CLOEXEC));
  if (f) static_cast<void>(::unlink(path.c_str()));
  return f;
}

/// An errno.
int reserve(int fd, std::uint64_t bytes) {
  const auto n = static_cast<off_t>(bytes);
  int e = 0;
  do e = ::fallocate(fd, 0, 0, n) == 0 ? 0 : errno;
  while (e == EINTR);
  if (e == EOPNOTSUPP) e = ::ftruncate(fd, n) == 0 ? 0 : errno;
  return e;
}

}  // namespace
}  // namespace ooc::storage

namespace ooc::detail {

store nameless_file_beside(const std::string& path, std::uint64_t bytes, const std::string& told) {
  using namespace storage;
  const auto slash = path.find_last_of('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  plain_file f;
  f.path = told;
  f.writable = true;
  f.file = nameless_in(folder);
  struct stat s {};
  int e = f.file && ::fstat(f.file.get(), &s) == 0 ? 0 : errno;
  if (e == 0) e = reserve(f.file.get(), bytes);
  if (e != 0) throw io_error({e, std::generic_category()}, "'" + folder + "'");
  f.direct =
      file_descriptor(::open(("/proc/self/fd/" + std::to_string(f.file.get())).c_str(), O_RDWR | O_CLOEXEC | O_DIRECT));
  static_cast<void>(::posix_fadvise(f.file.get(), 0, 0, POSIX_FADV_RANDOM));
  entry made = entry_in_place(s, told, bytes);
  const auto file = std::make_shared<const plain_file>(std::move(f));
  return store(std::make_shared<store_core>("file:" + told, "file without a name on device " + std::to_string(s.st_dev),
                                            std::make_shared<single_file>(std::move(made), file),
                                            striped_file::nodes{make_plain_file_node(file)}));
}

}  // namespace ooc::detail
