#include "storage/namespace/metadata_reader.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/namespace/metadata_schema.hpp"

namespace ooc::storage {

namespace {

/// Bytes in a file; -1: it is not there.
std::int64_t size_of(const std::string& file) {
  struct stat st {};
  if (::stat(file.c_str(), &st) == 0) return st.st_size;
  if (errno == ENOENT) return -1;
  throw io_error({errno, std::generic_category()}, "'" + file + "' cannot be looked at");
}

}  // namespace

metadata_reader::metadata_reader(std::filesystem::path file, std::string store_uuid)
    : file_(std::move(file)), uuid_(std::move(store_uuid)), node_file_(file_.parent_path() / "oocarray-node") {
  (void)open();
}

metadata_reader::log_state metadata_reader::look() const {
  const std::int64_t log = size_of(file_.string() + "-wal");
  if (size_of(file_.string() + "-journal") > 0) return log_state::waits;
  if (log >= 0 && size_of(file_.string() + "-shm") >= 0) return log_state::usable;
  return log > 0 ? log_state::waits : log_state::none;
}

opening_lock metadata_reader::open() {
  opening_lock lock(node_file_, opening::with_others);
  const log_state log = look();
  if (log == log_state::waits)
    throw usage_error({EACCES, std::generic_category()},
                      "metadata database '" + file_.string() + "': changes wait in its log ('" + file_.string() +
                          "-wal' or '-journal') that only who may write the store can " +
                          "bring in: let its owner open it once (`ooc ls`)");
  sealed_ = log == log_state::none;
  connection_.reset();  // before the other: SQLite counts the connections of a process to a file
  connection_ = open_metadata_database(file_, uuid_, sealed_ ? sqlite::open_as::sealed : sqlite::open_as::read_only);
  return lock;
}

opening_lock metadata_reader::begin() {
  if (!sealed_) return {};
  opening_lock lock(node_file_, opening::with_others);
  if (look() == log_state::none) return lock;
  lock = {};
  return open();
}

}  // namespace ooc::storage
