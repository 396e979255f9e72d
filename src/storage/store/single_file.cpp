#include "storage/store/single_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include "oocarray/error.hpp"
#include "storage/base/page.hpp"

namespace ooc::storage {
namespace {

/// The lock of an open file of the whole of it; an errno.
int set_file_lock(int fd, short type) {
  struct flock l {};
  l.l_type = type;
  l.l_whence = SEEK_SET;
  int e = 0;
  do e = ::fcntl(fd, F_OFD_SETLK, &l) == 0 ? 0 : errno;
  while (e == EINTR);
  return e;
}

struct held_file_lock {
  explicit held_file_lock(std::shared_ptr<const plain_file> f) : file(std::move(f)) {}
  ~held_file_lock() {
    // A child that was forked meanwhile shares the lock: it is not the child's to end.
    if (::getpid() == owner) static_cast<void>(set_file_lock(file->file.get(), F_UNLCK));
  }
  held_file_lock(const held_file_lock&) = delete;
  held_file_lock& operator=(const held_file_lock&) = delete;

  const std::shared_ptr<const plain_file> file;
  const pid_t owner = ::getpid();
};

}  // namespace

entry entry_in_place(const struct ::stat& s, std::string path, std::uint64_t bytes) {
  entry e;
  e.id = s.st_ino;
  e.path = std::move(path);
  e.owner = s.st_uid;
  e.group = s.st_gid;
  e.mode = s.st_mode & 07777;
  e.data_changed_ns = s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec;
  e.size = bytes;
  e.striping = {.sn = 0, .nn = 1, .sf = in_whole_pages(std::max<std::uint64_t>(bytes, 1))};
  e.in_place = true;
  return e;
}

void refuse_in_place(const entry& e, const char* what) {
  throw usage_error(errc::invalid_request, "'" + e.path + "' is a file in place, of no store, and cannot " + what);
}

entry single_file::found(const place& where) const {
  if (where.path == entry_.path || (where.folder == entry_.id && where.path.empty())) return entry_;
  throw usage_error(std::make_error_code(std::errc::no_such_file_or_directory), "'" + where.path + "'");
}

metadata_answer single_file::answer(const metadata_call& call) {
  using result = metadata_answer;
  const auto refuse = [this](const char* what) -> result { refuse_in_place(entry_, what); };
  return std::visit(overloaded{
                        [&](const calls::lookup& q) -> result { return found(q.where); },
                        [&](const calls::open& q) -> result {
                          if (!q.write || file_->writable) return found(q.where);
                          throw usage_error(std::make_error_code(std::errc::permission_denied),
                                            "'" + entry_.path + "' was opened for reading");
                        },
                        [&](const calls::find&) -> result { return entry_; },
                        [&](const calls::list&) -> result {
                          return folder_part{{entry_}, false};
                        },
                        [&](const calls::ids& q) -> result {
                          return q.state == file_state::committed ? id_part{{entry_.id}, false} : id_part{};
                        },
                        [&](const calls::set_generation&) -> result { return true; },
                        [&](const calls::create&) { return refuse("hold another file"); },
                        [&](const calls::commit&) { return refuse("hold another file"); },
                        [&](const calls::make_folder&) { return refuse("hold a folder"); },
                        [&](const calls::make&) { return refuse("hold names"); },
                        [&](const calls::link&) { return refuse("be given a name"); },
                        [&](const calls::move&) { return refuse("be renamed"); },
                        [&](const calls::remove&) { return refuse("be removed"); },
                        [&](const calls::unlink&) { return refuse("be removed"); },
                        [&](const calls::take_over&) { return refuse("be striped otherwise"); },
                        [&](const calls::set_size&) { return refuse("be resized"); },
                        [&](const calls::set_attribute&) { return refuse("have attributes"); },
                        [&](const calls::remove_attribute&) { return refuse("have attributes"); },
                        [&](const calls::change& q) {
                          return refuse(q.what.mode                    ? "have its mode changed"
                                        : q.what.owner || q.what.group ? "have its owner changed"
                                                                       : "be changed");
                        },
                        // There is no place to note what the others say.
                        [&]<class Call>(const Call&) -> result { return answer_of<Call>{}; },
                    },
                    call);
}

std::shared_ptr<void> single_file::lock(short type, const char* doing, claim_holder* in_the_way) {
  const int e = set_file_lock(file_->file.get(), type);
  if (e == EAGAIN || e == EACCES) {
    if (in_the_way) *in_the_way = {.name = {}, .ends = {}, .doing = doing};
    return nullptr;
  }
  // Else it is locked, or the file system has no locks, and nobody is kept apart.
  return std::make_shared<held_file_lock>(file_);
}

std::shared_ptr<void> single_file::claim_writer(file_id, bool together, claim_holder* in_the_way) {
  return lock(together ? F_RDLCK : F_WRLCK,
              together ? "is open for writing in another process" : "is open in another process", in_the_way);
}

std::shared_ptr<void> single_file::claim_reader(file_id, claim_holder* in_the_way) {
  return lock(F_RDLCK, "is open for writing in another process", in_the_way);
}

}  // namespace ooc::storage
