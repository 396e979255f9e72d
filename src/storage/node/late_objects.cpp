#include "storage/node/late_objects.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "storage/base/durable_file.hpp"
#include "storage/base/file_access.hpp"
#include "storage/object/checksum_file.hpp"

namespace ooc::storage {
namespace {

constexpr const char* file_name = "oocarray-unsynced";
constexpr const char* first_line = "oocarray-unsynced 1";

std::string boot_text() {
  std::string text;
  for (const std::uint8_t b : this_boot()) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

}  // namespace

file_descriptor late_objects::lock() const {
  file_descriptor fd(::open((folder_.path() / "shares").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (fd && ::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR) return {};
  return fd;
}

std::optional<late_objects::note> late_objects::read() const {
  std::ifstream in(folder_.path() / file_name);
  std::string line, boot_word, first_word, lost_word;
  note n;
  if (!std::getline(in, line) || line != first_line) return std::nullopt;
  if (!(in >> boot_word >> n.boot >> first_word >> n.first >> lost_word >> n.lost)) return std::nullopt;
  if (boot_word != "boot" || first_word != "first" || lost_word != "lost") return std::nullopt;
  return n;
}

bool late_objects::write(const note& n) const {
  try {
    const auto file = folder_.path() / file_name;
    const auto fresh = folder_.path() / (std::string(file_name) + ".new");
    write_durably(fresh, std::string(first_line) + "\nboot " + n.boot + "\nfirst " + std::to_string(n.first) +
                             "\nlost " + std::to_string(n.lost) + "\n");
    struct stat like {};
    if (::stat(folder_.path().c_str(), &like) != 0 || set_access(fresh, like.st_mode & 0666, ~0U, like.st_gid) != 0)
      return false;
    std::filesystem::rename(fresh, file);
    sync_folder(folder_.path());
    return true;
  } catch (const std::exception&) {
    // Then stripe objects are made durably, which says what is wrong if it is.
    return false;
  }
}

bool late_objects::allows(file_id id) {
  {
    const lock_guard known(mutex_);
    if (first_ != 0) return id >= first_;
  }
  const file_descriptor locked = lock();
  if (!locked) return false;
  note n = read().value_or(note{});
  if (n.boot != boot_text()) {
    if (n.first != 0) n.lost = n.lost == 0 ? n.first : std::min(n.lost, n.first);
    n.first = id;
    n.boot = boot_text();
    if (!write(n)) return false;
  }
  const lock_guard known(mutex_);
  first_ = n.first;
  return id >= first_;
}

bool late_objects::may_be_lost(file_id id) {
  const std::optional<note> n = read();
  if (!n) return false;
  if (n->boot != boot_text()) return (n->first != 0 && id >= n->first) || (n->lost != 0 && id >= n->lost);
  return n->lost != 0 && id >= n->lost && id < n->first;
}

}  // namespace ooc::storage
