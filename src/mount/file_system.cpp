#include "mount/file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "storage/base/log.hpp"
#include "storage/layout/stripe_choice.hpp"

namespace ooc::mount {

using storage::entry;
using storage::entry_change;
using storage::entry_kind;
using storage::new_entry;
using storage::place;

namespace {

constexpr std::uint32_t block = 512;

mode_t type_of(entry_kind kind) {
  switch (kind) {
    case entry_kind::folder: return S_IFDIR;
    case entry_kind::file: return S_IFREG;
    case entry_kind::link: return S_IFLNK;
    case entry_kind::fifo: return S_IFIFO;
    case entry_kind::socket: return S_IFSOCK;
    case entry_kind::character_device: return S_IFCHR;
    case entry_kind::block_device: return S_IFBLK;
  }
  return 0;
}

timespec time_of(std::int64_t ns) {
  constexpr std::int64_t second = 1'000'000'000;
  const std::int64_t whole = ns / second, rest = ns % second;
  return rest < 0 ? timespec{whole - 1, rest + second} : timespec{whole, rest};
}

// 0 would be no time.  What is out of range becomes the nearest that is not.
std::int64_t nanoseconds(const timespec& t) {
  using limits = std::numeric_limits<std::int64_t>;
  constexpr std::int64_t second = 1'000'000'000, most = limits::max() / second;
  if (t.tv_sec >= most) return limits::max();
  if (t.tv_sec < -most) return limits::min();
  const std::int64_t ns = t.tv_sec * second + t.tv_nsec;
  return ns != 0 ? ns : 1;
}

new_entry wanted(fuse_req_t req, entry_kind kind, mode_t mode) {
  const fuse_ctx* who = fuse_req_ctx(req);
  new_entry n;
  n.kind = kind;
  n.mode = mode & 07777;
  n.owner = who->uid;
  n.group = who->gid;
  return n;
}

ooc::striping usual_striping(file_system& fs) {
  const auto nodes = static_cast<std::uint32_t>(fs.core().nodes().size());
  ooc::striping s = storage::with_stripe_size({}, {}, nodes);
  if (s.nn == 0) s.nn = nodes;
  return s;
}

// Names.

void lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  answer_errors(req, [&](file_system& fs) { fs.reply_entry(req, fs.metadata().lookup({parent, name})); });
}

void getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  answer_by_number(req, [&](file_system& fs) {
    entry e = fs.stat(ino);
    const struct stat st = fs.attributes(e);
    fuse_reply_attr(req, &st, fs.attribute_timeout());
  });
}

void forget(fuse_req_t req, fuse_ino_t ino, std::uint64_t) {
  system_of(req).forgotten(ino);
  fuse_reply_none(req);
}

void setattr(fuse_req_t req, fuse_ino_t ino, struct stat* attr, int to_set, fuse_file_info*) {
  answer_by_number(req, [&](file_system& fs) {
    if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
      const auto f = fs.open(ino, true);
      const int error = f->resize(static_cast<std::uint64_t>(attr->st_size));
      const int told = error != 0 ? 0 : f->flush_and_wait();
      fs.release(ino, f, true);
      if (error != 0 || told != 0) return (void)fuse_reply_err(req, stale_if_gone(error != 0 ? error : told));
    }
    entry_change c;
    if ((to_set & FUSE_SET_ATTR_MODE) != 0) c.mode = attr->st_mode & 07777;
    if ((to_set & FUSE_SET_ATTR_UID) != 0) c.owner = attr->st_uid;
    if ((to_set & FUSE_SET_ATTR_GID) != 0) c.group = attr->st_gid;
    if ((to_set & FUSE_SET_ATTR_MTIME) != 0) c.data_changed_ns = nanoseconds(attr->st_mtim);
    if ((to_set & FUSE_SET_ATTR_ATIME) != 0) c.data_read_ns = nanoseconds(attr->st_atim);
    if ((to_set & FUSE_SET_ATTR_MTIME_NOW) != 0) c.data_changed_ns = now_ns();
    if ((to_set & FUSE_SET_ATTR_ATIME_NOW) != 0) c.data_read_ns = now_ns();
    // Bytes that are told of later would bring their own time.
    if (c.data_changed_ns)
      if (const auto f = fs.find(ino)) (void)f->flush_and_wait();
    entry e = c.empty() ? fs.stat(ino) : fs.core().change(ino, c);
    const struct stat st = fs.attributes(e);
    fuse_reply_attr(req, &st, fs.attribute_timeout());
  });
}

void make(fuse_req_t req, fuse_ino_t parent, const char* name, new_entry n) {
  answer_errors(req, [&](file_system& fs) {
    if (n.kind == entry_kind::file) n.striping = usual_striping(fs);
    fs.reply_entry(req, fs.metadata().make({parent, name}, n));
  });
}

void mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  const auto kind = S_ISREG(mode) || (mode & S_IFMT) == 0 ? entry_kind::file
                    : S_ISFIFO(mode)                      ? entry_kind::fifo
                    : S_ISSOCK(mode)                      ? entry_kind::socket
                    : S_ISCHR(mode)                       ? entry_kind::character_device
                                                          : entry_kind::block_device;
  new_entry n = wanted(req, kind, mode);
  if (S_ISCHR(mode) || S_ISBLK(mode)) n.device = device;
  make(req, parent, name, n);
}

void mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  make(req, parent, name, wanted(req, entry_kind::folder, mode));
}

void symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  new_entry n = wanted(req, entry_kind::link, 0777);
  n.target = target;
  make(req, parent, name, n);
}

void readlink(fuse_req_t req, fuse_ino_t ino) {
  answer_by_number(req, [&](file_system& fs) {
    const entry e = fs.stat(ino);
    if (e.kind != entry_kind::link) return (void)fuse_reply_err(req, EINVAL);
    fuse_reply_readlink(req, e.target.c_str());
  });
}

void link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  answer_by_number(req, [&](file_system& fs) { fs.reply_entry(req, fs.metadata().link(ino, {parent, name})); });
}

/// While it is held nobody can begin to write the array whose last name this is; null for anything else.  Throws
/// errc::busy where a program writes it: what it still has would be lost without a word.  Who has it open on this mount
/// goes on with it, as POSIX has it.
std::shared_ptr<void> claim_unused_array(file_system& fs, const place& at, const char* to_be) {
  const std::optional<entry> e = lookup_if_there(fs.metadata(), at);
  if (!e || e->kind != entry_kind::file || e->array.extents.empty() || e->names > 1) return nullptr;
  if (const auto here = fs.find(lasting_number(*e)); here && here->writable()) return nullptr;
  return fs.core().claim_unused(*e, to_be);
}

void unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  answer_errors(req, [&](file_system& fs) {
    const auto claim = claim_unused_array(fs, {parent, name}, "removed");
    fs.removed(fs.metadata().unlink({parent, name}, false));
    fuse_reply_err(req, 0);
  });
}

void rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  answer_errors(req, [&](file_system& fs) {
    fs.removed(fs.metadata().unlink({parent, name}, true));
    fuse_reply_err(req, 0);
  });
}

void rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t to_parent, const char* to, unsigned flags) {
  answer_errors(req, [&](file_system& fs) {
    if ((flags & ~unsigned{RENAME_NOREPLACE}) != 0) return (void)fuse_reply_err(req, EINVAL);
    const auto claim = claim_unused_array(fs, {to_parent, to}, "replaced");
    const entry replaced = fs.metadata().move({parent, name}, {to_parent, to}, (flags & RENAME_NOREPLACE) == 0);
    if (replaced.id != 0) fs.removed(replaced);
    fuse_reply_err(req, 0);
  });
}

// Folders.

void opendir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  answer_errors(req, [&](file_system&) {
    auto h = std::make_unique<file_system::folder_handle>();
    fi->fh = reinterpret_cast<std::uint64_t>(h.get());
    if (fuse_reply_open(req, fi) == 0) (void)h.release();
  });
}

void releasedir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  delete reinterpret_cast<file_system::folder_handle*>(fi->fh);
  fuse_reply_err(req, 0);
}

// Offsets: 0 and 1 are "." and "..", then come the entries in the order in which they were first listed.
std::size_t fill_directory(fuse_req_t req, file_system& fs, file_system::folder_handle& h, fuse_ino_t ino,
                           std::string& buffer, off_t offset) {
  const lock_guard lock(h.reading);
  if (offset == 0) {
    h.entries.clear();
    h.complete = false;
  }
  std::size_t used = 0;
  for (auto at = static_cast<std::size_t>(offset);; ++at) {
    struct stat st {};
    std::string name = at == 0 ? "." : "..";
    st.st_ino = ino;
    st.st_mode = S_IFDIR;
    if (at >= 2) {
      while (at - 2 >= h.entries.size() && !h.complete) {
        auto part = fs.metadata().list_part(ino, h.entries.empty() ? "" : h.entries.back().path);
        h.complete = !part.more;
        std::move(part.entries.begin(), part.entries.end(), std::back_inserter(h.entries));
      }
      if (at - 2 >= h.entries.size()) break;
      const entry& e = h.entries[at - 2];
      name = e.path;
      st.st_ino = lasting_number(e);
      st.st_mode = type_of(e.kind);
    }
    const std::size_t needed = fuse_add_direntry(req, buffer.data() + used, buffer.size() - used, name.c_str(), &st,
                                                 static_cast<off_t>(at + 1));
    if (needed > buffer.size() - used) break;
    used += needed;
  }
  return used;
}

void readdir(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info* fi) {
  answer_errors(req, [&](file_system& fs) {
    std::string buffer(size, '\0');
    const std::size_t used =
        fill_directory(req, fs, *reinterpret_cast<file_system::folder_handle*>(fi->fh), ino, buffer, offset);
    fuse_reply_buf(req, buffer.data(), used);  // from here on the handle may be gone
  });
}

void fsyncdir(fuse_req_t req, fuse_ino_t, int, fuse_file_info*) {
  answer_errors(req, [&](file_system& fs) {
    fs.metadata().sync();
    fuse_reply_err(req, 0);
  });
}

void statfs(fuse_req_t req, fuse_ino_t) {
  answer_errors(req, [&](file_system& fs) {
    fs.core().removals().finish();  // their space counts as free
    const space s = fs.options().ask_space();
    struct statvfs v {};
    v.f_bsize = v.f_frsize = 4096;
    v.f_blocks = s.bytes / 4096;
    v.f_bfree = v.f_bavail = s.free / 4096;
    v.f_files = v.f_ffree = v.f_favail = std::uint64_t{1} << 40;
    v.f_namemax = 255;
    fuse_reply_statfs(req, &v);
  });
}

// Each read-ahead of the kernel is one request: 1 MiB in place of 128 KiB, which are too few for several nodes.
// Only root may say so; for others it stays.  The folder must be asked for nothing that the kernel asks this mount for.
void read_further_ahead(const std::string& folder, fuse_conn_info* conn) {
  constexpr unsigned bytes = 1 << 20;
  struct statx s {};
  if (::statx(AT_FDCWD, folder.c_str(), AT_STATX_DONT_SYNC, 0, &s) != 0) return;
  const std::string device = std::to_string(s.stx_dev_major) + ":" + std::to_string(s.stx_dev_minor);
  std::ofstream out("/sys/class/bdi/" + device + "/read_ahead_kb");
  if (out << bytes / 1024 << std::flush) conn->max_readahead = bytes;
}

void initialise(void* data, fuse_conn_info* conn) {
  const auto& fs = *static_cast<file_system*>(data);
  conn->want &= ~unsigned{FUSE_CAP_WRITEBACK_CACHE};
  if (fs.options().single) conn->want |= conn->capable & FUSE_CAP_WRITEBACK_CACHE;
  read_further_ahead(fs.options().folder, conn);
  conn->max_background = 128;
  conn->time_gran = 1;
}

}  // namespace

file_system::file_system(std::shared_ptr<storage::store_core> core, const mount_options& options)
    : core_(std::move(core)), options_(options) {}

void file_system::finish() {
  std::vector<std::shared_ptr<live_file>> left;
  under_way_.wait_below(1);
  {
    const lock_guard lock(mutex_);
    for (auto& [id, f] : files_) left.push_back(f.file);
    files_.clear();
  }
  for (const auto& f : left) f->close_all();
}

fuse_lowlevel_ops file_system::operations() {
  fuse_lowlevel_ops ops{};
  ops.init = initialise;
  ops.lookup = lookup;
  ops.getattr = getattr;
  ops.forget = forget;
  ops.setattr = setattr;
  ops.mknod = mknod;
  ops.mkdir = mkdir;
  ops.symlink = symlink;
  ops.readlink = readlink;
  ops.link = link;
  ops.unlink = unlink;
  ops.rmdir = rmdir;
  ops.rename = rename;
  ops.opendir = opendir;
  ops.readdir = readdir;
  ops.releasedir = releasedir;
  ops.fsyncdir = fsyncdir;
  ops.statfs = statfs;
  add_file_calls(ops);
  add_attribute_calls(ops);
  return ops;
}

std::shared_ptr<live_file> file_system::open(file_id id, bool write) {
  std::shared_ptr<live_file> f;
  bool removed = false;
  {
    const lock_guard lock(mutex_);
    open_file& o = files_[id];
    if (!o.file) o.file = std::make_shared<live_file>(core_, jobs_, id);
    ++o.users;
    f = o.file;
    removed = o.removed.has_value();
  }
  try {
    f->open(write, removed);
  } catch (...) {
    release(id, f, false);
    throw;
  }
  return f;
}

void file_system::release(file_id id, const std::shared_ptr<live_file>& f, bool write) {
  f->close(write);
  std::optional<entry> discard;
  {
    const lock_guard lock(mutex_);
    const auto i = files_.find(id);
    if (i == files_.end() || --i->second.users != 0) return;
    discard = std::move(i->second.removed);
    files_.erase(i);
  }
  if (discard) core_->removals().add_unnamed(*std::move(discard));
}

std::shared_ptr<live_file> file_system::find(file_id id) {
  const lock_guard lock(mutex_);
  const auto i = files_.find(id);
  return i == files_.end() ? nullptr : i->second.file;
}

void file_system::removed(entry e) {
  if (e.names != 0) return;
  e.attributes.clear();
  {
    const lock_guard lock(mutex_);
    gone_.insert_or_assign(lasting_number(e), e);
    if (e.kind != entry_kind::file) return;
    const auto i = files_.find(lasting_number(e));
    if (i != files_.end()) return (void)(i->second.removed = std::move(e));
  }
  core_->removals().add_unnamed(std::move(e));
}

void file_system::forgotten(file_id id) {
  const lock_guard lock(mutex_);
  gone_.erase(id);
}

entry file_system::stat(file_id id) {
  try {
    return metadata().lookup(id);
  } catch (const error& none) {
    if (none.code() != std::errc::no_such_file_or_directory) throw;
    const lock_guard lock(mutex_);
    const auto i = gone_.find(id);
    if (i == gone_.end()) throw;
    return i->second;
  }
}

struct ::stat file_system::attributes(entry& e) {
  if (const auto f = e.kind == entry_kind::file ? find(lasting_number(e)) : nullptr) f->overlay(e);
  struct ::stat st {};
  st.st_ino = lasting_number(e);
  st.st_mode = type_of(e.kind) | (e.mode & 07777);
  st.st_nlink = e.kind == entry_kind::folder && e.names != 0 ? 2 : e.names;
  st.st_uid = e.owner;
  st.st_gid = e.group;
  st.st_rdev = e.device;
  st.st_size = static_cast<off_t>(e.kind == entry_kind::link ? e.target.size() : e.size);
  st.st_blksize = 1 << 20;
  st.st_blocks = static_cast<blkcnt_t>((storage::stored_size(e) + block - 1) / block);
  const std::int64_t changed = e.data_changed_ns != 0 ? e.data_changed_ns : e.changed_ns;
  st.st_mtim = time_of(changed);
  st.st_atim = time_of(e.data_read_ns != 0 ? e.data_read_ns : changed);
  st.st_ctim = time_of(std::max(e.changed_ns, e.created_ns));
  return st;
}

void file_system::reply_entry(fuse_req_t req, entry e) {
  fuse_entry_param p{};
  p.ino = lasting_number(e);
  p.generation = 1;
  p.attr = attributes(e);
  p.attr_timeout = attribute_timeout();
  p.entry_timeout = entry_timeout();
  fuse_reply_entry(req, &p);
}

}  // namespace ooc::mount
