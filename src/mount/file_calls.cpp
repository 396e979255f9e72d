// Calls of the kernel on the bytes of files.
#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "mount/file_system.hpp"
#include "storage/layout/stripe_choice.hpp"

namespace ooc::mount {

using storage::entry;
using storage::entry_kind;

namespace {

file_system::handle& handle_of(const fuse_file_info* fi) { return *reinterpret_cast<file_system::handle*>(fi->fh); }

std::unique_ptr<file_system::handle> open_handle(file_system& fs, file_id id, fuse_file_info* fi) {
  auto h = std::make_unique<file_system::handle>();
  h->id = id;
  h->write = (fi->flags & O_ACCMODE) != O_RDONLY || (fi->flags & O_TRUNC) != 0;
  h->synchronous = (fi->flags & (O_SYNC | O_DSYNC)) != 0;
  h->through = h->synchronous || (fi->flags & O_DIRECT) != 0;
  h->file = fs.open(id, h->write);
  h->errors_seen = h->file->errors_so_far();
  fi->fh = reinterpret_cast<std::uint64_t>(h.get());
  fi->keep_cache = fs.options().single;
  return h;
}

void close_handle(file_system& fs, std::unique_ptr<file_system::handle> h) { fs.release(h->id, h->file, h->write); }

/// A call that is answered later, as long as one of its copies lives.
std::shared_ptr<void> under_way(file_system& fs) {
  fs.begin();
  return {&fs, [](file_system* f) { f->end(); }};
}

/// Answers with this error, or with that of an earlier write of which the handle has not heard.
void reply_error(fuse_req_t req, file_system::handle& h, int error) {
  const int earlier = h.file->take_error(h.errors_seen);
  fuse_reply_err(req, stale_if_gone(error != 0 ? error : earlier));
}

void open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  answer_by_number(req, [&](file_system& fs) {
    auto h = open_handle(fs, ino, fi);
    if ((fi->flags & O_TRUNC) != 0)
      if (const int error = h->file->resize(0)) {
        close_handle(fs, std::move(h));
        return (void)fuse_reply_err(req, stale_if_gone(error));
      }
    if (fuse_reply_open(req, fi) == 0)
      (void)h.release();
    else
      close_handle(fs, std::move(h));
  });
}

/// Where another mount has made it meanwhile, and the caller need not be the first: ESTALE lets the kernel look it up,
/// check its permissions, and open what is there.  EBUSY where another program has begun to make it.
entry make_file(file_system& fs, const storage::place& at, const storage::new_entry& what, bool first) {
  for (bool again = false;; again = true) try {
      return fs.metadata().make(at, what);
    } catch (const error& there) {
      if (there.code() != std::errc::file_exists || first) throw;
      if (lookup_if_there(fs.metadata(), at)) throw usage_error({ESTALE, std::generic_category()}, there.what());
      if (again) throw usage_error({EBUSY, std::generic_category()}, there.what());
    }
}

void create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* fi) {
  answer_by_number(req, [&](file_system& fs) {
    const fuse_ctx* who = fuse_req_ctx(req);
    storage::new_entry n;
    n.mode = mode & 07777;
    n.owner = who->uid;
    n.group = who->gid;
    const auto nodes = static_cast<std::uint32_t>(fs.core().nodes().size());
    n.striping = storage::with_stripe_size({}, {}, nodes);
    if (n.striping.nn == 0) n.striping.nn = nodes;
    entry e = make_file(fs, {parent, name}, n, (fi->flags & O_EXCL) != 0);
    auto h = open_handle(fs, lasting_number(e), fi);
    fuse_entry_param p{};
    p.ino = lasting_number(e);
    p.generation = 1;
    p.attr = fs.attributes(e);
    p.attr_timeout = fs.attribute_timeout();
    p.entry_timeout = fs.entry_timeout();
    if (fuse_reply_create(req, &p, fi) == 0)
      (void)h.release();
    else
      close_handle(fs, std::move(h));
  });
}

void read(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* fi) {
  answer_by_number(req, [&](file_system& fs) {
    handle_of(fi).file->read(static_cast<std::uint64_t>(offset), size,
                             [call = under_way(fs), req](int error, std::span<const std::byte> bytes) {
                               if (error != 0)
                                 fuse_reply_err(req, stale_if_gone(error));
                               else
                                 fuse_reply_buf(req, reinterpret_cast<const char*>(bytes.data()), bytes.size());
                             });
  });
}

void write(fuse_req_t req, fuse_ino_t, const char* data, std::size_t size, off_t offset, fuse_file_info* fi) {
  answer_by_number(req, [&](file_system& fs) {
    auto& h = handle_of(fi);
    if (const int error = h.file->take_error(h.errors_seen)) return (void)fuse_reply_err(req, stale_if_gone(error));
    const auto answer = [call = under_way(fs), &h, req, size](int error) {
      // The one that answers now need not be heard of again.
      if (error != 0) (void)h.file->take_error(h.errors_seen);
      if (error != 0)
        fuse_reply_err(req, stale_if_gone(error));
      else
        fuse_reply_write(req, size);
    };
    // On a thread that a node answers on, sync() could wait for that very node: it may have to make the file longer.
    const auto synced = [&fs, &h, answer](int error) {
      if (error != 0 || !h.synchronous) return answer(error);
      fs.jobs().post([file = h.file, answer] { file->sync(answer); });
    };
    h.file->write(static_cast<std::uint64_t>(offset), {reinterpret_cast<const std::byte*>(data), size}, h.through,
                  synced);
  });
}

void flush(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  answer_by_number(req, [&](file_system& fs) {
    auto& h = handle_of(fi);
    if (!h.write) return (void)fuse_reply_err(req, 0);
    h.file->flush([call = under_way(fs), &h, req](int error) { reply_error(req, h, error); });
  });
}

void fsync(fuse_req_t req, fuse_ino_t, int, fuse_file_info* fi) {
  answer_by_number(req, [&](file_system& fs) {
    auto& h = handle_of(fi);
    h.file->sync([call = under_way(fs), &h, req](int error) { reply_error(req, h, error); });
  });
}

void release(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  answer_errors(req, [&](file_system& fs) {
    close_handle(fs, std::unique_ptr<file_system::handle>(&handle_of(fi)));
    fuse_reply_err(req, 0);
  });
}

void fallocate(fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t length, fuse_file_info* fi) {
  answer_by_number(req, [&](file_system&) {
    auto& h = handle_of(fi);
    const bool keep = (mode & FALLOC_FL_KEEP_SIZE) != 0;
    const auto begin = static_cast<std::uint64_t>(offset);
    const std::uint64_t end = begin + static_cast<std::uint64_t>(length);
    int error = 0;
    switch (mode & ~FALLOC_FL_KEEP_SIZE) {
      case 0: error = h.file->allocate(end, keep); break;
      case FALLOC_FL_PUNCH_HOLE:
      case FALLOC_FL_ZERO_RANGE: {
        const std::uint64_t size = h.file->size();
        if (begin < std::min(end, size)) error = h.file->zero(begin, std::min(end, size) - begin);
        if (error == 0 && end > size && (mode & FALLOC_FL_ZERO_RANGE) != 0) error = h.file->allocate(end, keep);
        break;
      }
      default: error = EOPNOTSUPP;
    }
    fuse_reply_err(req, stale_if_gone(error));
  });
}

}  // namespace

void add_file_calls(fuse_lowlevel_ops& ops) {
  ops.open = open;
  ops.create = create;
  ops.read = read;
  ops.write = write;
  ops.flush = flush;
  ops.fsync = fsync;
  ops.release = release;
  ops.fallocate = fallocate;
}

}  // namespace ooc::mount
