#include "measure/pass_through.hpp"

#define FUSE_USE_VERSION 312
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace bench {
namespace {

// In the child: the source, and the names that the kernel knows (their numbers begin with 2).
int source_fd = -1;
std::mutex names_mutex;
std::vector<std::string> names;

std::string name_of(fuse_ino_t ino) {
  const std::lock_guard lock(names_mutex);
  return ino == 1 ? "." : names.at(ino - 2);
}

fuse_ino_t number_of(const std::string& name) {
  const std::lock_guard lock(names_mutex);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return i + 2;
  names.push_back(name);
  return names.size() + 1;
}

int fill(const std::string& name, fuse_entry_param& e) {
  e = {};
  if (::fstatat(source_fd, name.c_str(), &e.attr, 0) != 0) return errno;
  e.attr.st_ino = e.ino = number_of(name);
  e.attr_timeout = 1;
  return 0;
}

void lookup(fuse_req_t req, fuse_ino_t, const char* name) {
  fuse_entry_param e;
  if (const int error = fill(name, e)) return (void)fuse_reply_err(req, error);
  fuse_reply_entry(req, &e);
}

void getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  struct stat st {};
  if (::fstatat(source_fd, name_of(ino).c_str(), &st, 0) != 0) return (void)fuse_reply_err(req, errno);
  st.st_ino = ino;
  fuse_reply_attr(req, &st, 1);
}

void setattr(fuse_req_t req, fuse_ino_t ino, struct stat* attr, int to_set, fuse_file_info*) {
  const int fd = ::openat(source_fd, name_of(ino).c_str(), O_RDWR);
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0 && ::ftruncate(fd, attr->st_size) != 0) {
    fuse_reply_err(req, errno);
  } else {
    getattr(req, ino, nullptr);
  }
  ::close(fd);
}

void open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  const int fd = ::openat(source_fd, name_of(ino).c_str(), O_RDWR | (fi->flags & O_TRUNC));
  if (fd < 0) return (void)fuse_reply_err(req, errno);
  fi->fh = static_cast<std::uint64_t>(fd);
  fuse_reply_open(req, fi);
}

void create(fuse_req_t req, fuse_ino_t, const char* name, mode_t mode, fuse_file_info* fi) {
  const int fd = ::openat(source_fd, name, O_RDWR | O_CREAT, mode);
  fuse_entry_param e;
  if (fd < 0 || fill(name, e) != 0) return (void)fuse_reply_err(req, EIO);
  fi->fh = static_cast<std::uint64_t>(fd);
  fuse_reply_create(req, &e, fi);
}

void read(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* fi) {
  fuse_bufvec b = FUSE_BUFVEC_INIT(size);
  b.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  b.buf[0].fd = static_cast<int>(fi->fh);
  b.buf[0].pos = offset;
  fuse_reply_data(req, &b, FUSE_BUF_SPLICE_MOVE);
}

void write_buf(fuse_req_t req, fuse_ino_t, fuse_bufvec* from, off_t offset, fuse_file_info* fi) {
  fuse_bufvec b = FUSE_BUFVEC_INIT(fuse_buf_size(from));
  b.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  b.buf[0].fd = static_cast<int>(fi->fh);
  b.buf[0].pos = offset;
  const ssize_t n = fuse_buf_copy(&b, from, fuse_buf_copy_flags{});
  if (n < 0) return (void)fuse_reply_err(req, static_cast<int>(-n));
  fuse_reply_write(req, static_cast<std::size_t>(n));
}

void release(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  ::close(static_cast<int>(fi->fh));
  fuse_reply_err(req, 0);
}

[[noreturn]] void serve(const std::filesystem::path& source, const std::filesystem::path& folder) {
  // libfuse leaves handlers that are there already.
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  source_fd = ::open(source.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  fuse_lowlevel_ops ops{};
  ops.lookup = lookup;
  ops.getattr = getattr;
  ops.setattr = setattr;
  ops.open = open;
  ops.create = create;
  ops.read = read;
  ops.write_buf = write_buf;
  ops.release = release;
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&args, "oocbench");
  fuse_session* const session = fuse_session_new(&args, &ops, sizeof ops, nullptr);
  if (source_fd < 0 || !session || fuse_set_signal_handlers(session) != 0 ||
      fuse_session_mount(session, folder.c_str()) != 0)
    ::_exit(1);
  fuse_loop_config* const config = fuse_loop_cfg_create();
  fuse_session_loop_mt(session, config);
  fuse_session_unmount(session);
  ::_exit(0);
}

}  // namespace

dev_t device_of(const std::filesystem::path& folder) {
  struct stat st {};
  return ::stat(folder.c_str(), &st) == 0 ? st.st_dev : 0;
}

bool is_mounted_soon(const std::filesystem::path& folder, dev_t before) {
  for (int i = 0; i < 1000; ++i) {
    if (device_of(folder) != before) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

pass_through::pass_through(std::filesystem::path source, std::filesystem::path folder) {
  const dev_t before = device_of(folder);
  pid_ = ::fork();
  if (pid_ == 0) serve(source, folder);
  if (is_mounted_soon(folder, before)) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  throw std::runtime_error("mount: '" + folder.string() + "' cannot be mounted; it takes /dev/fuse and fusermount3");
}

pass_through::~pass_through() {
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace bench
