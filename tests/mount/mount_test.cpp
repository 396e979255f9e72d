// Tests of what a mounted store does beside reading and writing files one after the other.
#include <dirent.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "mounted.hpp"
#include "storage/service/writer_claim.hpp"
#include "support/small_space.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

std::string attribute(const fs::path& path, const char* name) {
  char value[300];
  const auto n = ::getxattr(path.c_str(), name, value, sizeof value);
  return n < 0 ? "errno " + std::to_string(errno) : std::string(value, static_cast<std::size_t>(n));
}

void make_array(storage::store_core& core, const std::string& path) {
  storage::new_file f;
  f.size = 12 * 8;
  f.striping = {0, 2, 4096};
  f.array = {"f8", 8, {3, 4}, {3}, {}, {}};
  core.create(path, f);
}

/// In a child: each file takes half of the disk, where the metadata are too, and is removed before the next.
int fill_again_and_again(const fs::path& small, const fs::path& folder) {
  const std::string url = "local:" + (small / "n0").string();
  (void)ooc::store::open(url);
  const std::string much = pattern(small_space / 2);
  mount_process mount(url, folder);
  for (int i = 0; i < 4; ++i) {
    descriptor f(mount / "f", O_WRONLY | O_CREAT | O_TRUNC);
    EXPECT(::write(f, much.data(), much.size()) == static_cast<ssize_t>(much.size()));
    EXPECT(::fsync(f) == 0);
    EXPECT(f.close() == 0);
    EXPECT(contents(mount / "f") == much);
    EXPECT(::unlink((mount / "f").c_str()) == 0);
    struct statvfs now {};
    if (i == 3) EXPECT(::statvfs(mount.folder().c_str(), &now) == 0);
    if (i == 3) EXPECT(now.f_bavail * now.f_frsize > small_space / 2);
  }
  EXPECT(mount.stop() == 0);
  return 0;
}

}  // namespace

TEST_CASE("the space of removed files is there for who needs it, and for df, at once") {
  if (!can_mount()) return;
  temporary_folder here;
  fs::create_directories(here / "small");
  const int failed =
      in_small_space(here / "small", [&](bool) { return fill_again_and_again(here / "small", here / "mount"); });
  CHECK(failed == 0);
}

TEST_CASE("a removed or replaced file is used on while it is open, and then gone") {
  if (!can_mount()) return;
  mounted_store s;
  write(s.mount / "a", "old");
  write(s.mount / "b", "new");
  {
    descriptor a(s.mount / "a", O_RDWR), b(s.mount / "b", O_RDWR);
    REQUIRE(::rename((s.mount / "b").c_str(), (s.mount / "a").c_str()) == 0);
    REQUIRE(::unlink((s.mount / "a").c_str()) == 0);
    char text[3];
    CHECK(::pread(a, text, 3, 0) == 3);
    CHECK(std::string(text, 3) == "old");
    CHECK(::pwrite(b, "more", 4, 2'000'000) == 4);
    struct stat st {};
    CHECK(::fstat(b, &st) == 0);
    CHECK(st.st_nlink == 0);
    CHECK(st.st_size == 2'000'004);
    CHECK(::fsync(b) == 0);
  }
  CHECK(fs::is_empty(s.mount.folder()));
  CHECK(s.mount.stop() == 0);
  const auto core = s.core();
  CHECK(core->metadata().unfinished().empty());
  CHECK(core->metadata().dead().empty());
  std::size_t objects = 0;
  for (const char* node : {"n0", "n1"})
    for (const auto& e : fs::recursive_directory_iterator(s.folder / node / "shares")) objects += e.is_regular_file();
  CHECK(objects == 0);
}

TEST_CASE("a file that was mapped has what was stored in the map") {
  if (!can_mount()) return;
  mounted_store s;
  constexpr std::size_t bytes = 3 << 20;
  {
    descriptor f(s.mount / "f", O_RDWR | O_CREAT);
    REQUIRE(::ftruncate(f, bytes) == 0);
    auto* const p = static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0));
    REQUIRE(p != MAP_FAILED);
    CHECK(p[bytes - 1] == 0);
    std::memset(p, 'x', bytes);
    CHECK(::msync(p, bytes, MS_SYNC) == 0);
    ::munmap(p, bytes);
  }
  CHECK(contents(s.mount / "f") == std::string(bytes, 'x'));
  CHECK(s.mount.stop() == 0);
  mount_process again(s.url, s.folder / "mount");
  CHECK(contents(again / "f") == std::string(bytes, 'x'));
}

TEST_CASE("an array is a file that can be read and written, and stays as long as it is") {
  if (!can_mount()) return;
  mountable_store s(false);
  make_array(*s.core(), "a");
  mount_process m(s.url, s.folder / "mount");
  CHECK(attribute(m / "a", "user.ooc.shape") == "3,4");
  CHECK(attribute(m / "a", "user.ooc.type") == "f8");
  CHECK(attribute(m / "a", "user.ooc.striping") == "0,2,4096");
  CHECK(fs::file_size(m / "a") == 96);
  const double value = 2.5;
  {
    descriptor f(m / "a", O_RDWR);
    CHECK(::pwrite(f, &value, 8, 16) == 8);
    CHECK(error_of(::pwrite(f, &value, 8, 92)) == EFBIG);
    CHECK(error_of(::ftruncate(f, 8)) == EPERM);
    CHECK(error_of(::ftruncate(f, 96)) == 0);
    CHECK(::fsync(f) == 0);
    double back = 0;
    CHECK(::pread(f, &back, 8, 16) == 8);
    CHECK(back == value);
  }
  CHECK(error_of(::open((m / "a").c_str(), O_WRONLY | O_TRUNC)) == EPERM);
  CHECK(m.stop() == 0);
  double stored = 0;
  const auto core = s.core();
  const auto f = core->open("a", storage::open_mode::read);
  CHECK_FALSE(f.file->read(request::contiguous(16, 8), reinterpret_cast<std::byte*>(&stored)));
  CHECK(stored == value);
  // While a program has the array for itself, it is not written here.
  const auto claim = core->metadata().claim_writer(f.meta.id, false);
  REQUIRE(claim);
  mount_process again(s.url, s.folder / "mount");
  CHECK(error_of(::open((again / "a").c_str(), O_RDWR)) == EBUSY);
  CHECK(contents(again / "a").size() == 96);
}

TEST_CASE(
    "an array that a program writes is not removed or replaced, one that is only open here or has another name is") {
  if (!can_mount()) return;
  const bool served = GENERATE(false, true);
  CAPTURE(served);
#ifndef OOC_WITH_SERVERS
  if (served) return;
#endif
  mountable_store s(served);
  const auto core = s.core();
  make_array(*core, "a");
  mount_process m(s.url, s.folder / "mount");
  const std::string a = m / "a", plain = m / "plain", other = m / "other";
  write(plain, "bytes");
  {
    const auto claim = storage::claim_to_write(*core, core->metadata().lookup("a").id, false);
    REQUIRE(claim);
    CHECK(error_of(::unlink(a.c_str())) == EBUSY);
    CHECK(error_of(::rename(plain.c_str(), a.c_str())) == EBUSY);
    CHECK(fs::file_size(a) == 96);
    CHECK(error_of(::rename(a.c_str(), other.c_str())) == 0);  // moved, it stays the array
    CHECK(error_of(::link(other.c_str(), a.c_str())) == 0);
    CHECK(error_of(::unlink(other.c_str())) == 0);  // a name, not the last
  }
  {
    descriptor f(a, O_RDWR);
    CHECK(error_of(::unlink(a.c_str())) == 0);
    CHECK(::pwrite(f, "x", 1, 0) == 1);
  }
  make_array(*core, "a");
  CHECK(error_of(::rename(plain.c_str(), a.c_str())) == 0);
  CHECK(contents(a) == "bytes");
}

TEST_CASE("striping, type and shape are set on an empty file, which then is an array") {
  if (!can_mount()) return;
  mountable_store s(false);
  mount_process m(s.url, s.folder / "mount");
  const auto set = [](const std::string& f, const char* name, const std::string& value, int flags = 0) {
    return ::setxattr(f.c_str(), name, value.data(), value.size(), flags);
  };
  const std::string f = m / "f", g = m / "g";
  write(f, "");
  CHECK(set(f, "user.ooc.striping", "1,1,8192") == 0);
  CHECK(attribute(f, "user.ooc.striping") == "1,1,8192");
  CHECK(set(f, "user.ooc.striping", "1,2,8192,1,0") == 0);
  CHECK(set(f, "user.ooc.striping", "0,2,8192") == 0);
  CHECK(attribute(f, "user.ooc.striping") == "0,2,8192");
  for (const char* wrong : {"0,3,8192", "0,0,8192", "0,2,0", "2,1,8192"})
    CHECK(error_of(set(f, "user.ooc.striping", wrong)) == EINVAL);
  CHECK(error_of(set(f, "user.ooc.striping", "many")) == EINVAL);
  CHECK(error_of(set(f, "user.ooc.striping", "0,1,8192", XATTR_CREATE)) == EEXIST);  // every file has one
  CHECK(error_of(set(f, "user.ooc.shape", "3,4")) == EINVAL);                        // of what type?
  CHECK(error_of(set(f, "user.ooc.type", "f4", XATTR_REPLACE)) == ENODATA);
  CHECK(set(f, "user.ooc.type", "f4", XATTR_CREATE) == 0);
  CHECK(error_of(set(f, "user.ooc.type", "f4", XATTR_CREATE)) == EEXIST);
  CHECK(error_of(set(f, "user.ooc.type", "f9")) == EINVAL);
  CHECK(set(f, "user.ooc.type", "f8", XATTR_REPLACE) == 0);
  CHECK(error_of(set(f, "user.ooc.shape", "3,0")) == EINVAL);
  // The kernel tells a mount later that a file was closed: until then it is open there.
  CHECK(soon([&] { return set(f, "user.ooc.shape", "3,4", XATTR_CREATE) == 0; }));
  CHECK(fs::file_size(f) == 96);
  CHECK(error_of(set(f, "user.ooc.shape", "5")) == EPERM);
  CHECK(error_of(set(f, "user.ooc.tile", "5")) == EPERM);
  const double value = 2.5;
  {
    descriptor d(f, O_RDWR);
    CHECK(::pwrite(d, &value, 8, 16) == 8);
    CHECK(error_of(::ftruncate(d, 8)) == EPERM);
  }
  write(g, "bytes");
  CHECK(error_of(set(g, "user.ooc.striping", "1,1,8192")) == EPERM);
  CHECK(contents(g) == "bytes");
  CHECK(m.stop() == 0);
  const auto a = s.core()->open("f", storage::open_mode::read);
  CHECK(a.meta.array.extents == std::vector<std::uint64_t>{3, 4});
  double stored = 0;
  CHECK_FALSE(a.file->read(request::contiguous(16, 8), reinterpret_cast<std::byte*>(&stored)));
  CHECK(stored == value);
}

TEST_CASE("making, truncating and appending to small files syncs nothing until fsync") {
  if (!can_mount()) return;
  mountable_store s(false);
  const auto count = s.folder / "count";
  write(count, std::string(8, '\0'));
  const auto syncs = [&] {
    std::uint64_t n = 0;
    std::memcpy(&n, contents(count).data(), 8);
    return n;
  };
  mount_process m(s.url, s.folder / "mount", "", {"LD_PRELOAD=" COUNT_SYNCS, "OOC_COUNT_SYNCS=" + count.string()});
  const std::string data = pattern(100'000);
  write(m / "first", data);  // sets ids and the boot aside, once
  const std::uint64_t before = syncs();
  for (int i = 0; i < 50; ++i) write(m / ("f" + std::to_string(i)), data);
  {
    descriptor f(m / "first", O_RDWR | O_CREAT), fresh(m / "fresh", O_RDWR | O_CREAT);
    const std::uint64_t opened = syncs();
    CHECK(opened - before <= 12);  // of a file that was there the next generation is noted
    for (int i = 0; i < 50; ++i) {
      CHECK(::pwrite(fresh, data.data(), 5000, 3000 * i) == 5000);
      CHECK(::ftruncate(fresh, 7919 * i % 60000) == 0);
    }
    CHECK(syncs() == opened);
    CHECK(::fsync(fresh) == 0);
    CHECK(syncs() > opened);
  }
  CHECK(contents(m / "f49") == data);
  CHECK(m.stop() == 0);
  CHECK(run_command(OOC_COMMAND " --store " + s.url + " verify", s.folder / "v").status == 0);
}

TEST_CASE("extended attributes of users are kept, others refused") {
  if (!can_mount()) return;
  mounted_store s;
  write(s.mount / "f", "x");
  const std::string f = s.mount / "f", bytes("a\0b", 3);
  CHECK(::setxattr(f.c_str(), "user.k", bytes.data(), 3, 0) == 0);
  CHECK(attribute(f, "user.k") == bytes);
  CHECK(error_of(::setxattr(f.c_str(), "user.k", "v", 1, XATTR_CREATE)) == EEXIST);
  CHECK(error_of(::setxattr(f.c_str(), "user.l", "v", 1, XATTR_REPLACE)) == ENODATA);
  CHECK(error_of(::setxattr(f.c_str(), "user.ooc.shape", "v", 1, 0)) == EPERM);  // it has bytes
  CHECK(error_of(::setxattr(f.c_str(), "trusted.k", "v", 1, 0)) == EOPNOTSUPP);
  CHECK(error_of(::getxattr(f.c_str(), "user.none", nullptr, 0)) == ENODATA);
  char list[200];
  const auto n = ::listxattr(f.c_str(), list, sizeof list);
  REQUIRE(n > 0);
  CHECK(std::string(list, static_cast<std::size_t>(n)).find("user.k") != std::string::npos);
  ooc::store::open(s.url, {.create = false}).core()->metadata().set_attribute("", "ooc.drained", "0");
  // It is of the store, as is what is under user.ooc, and no copy is to have it.
  CHECK(::listxattr(s.mount.folder().c_str(), nullptr, 0) == 0);
  CHECK(::removexattr(f.c_str(), "user.k") == 0);
  CHECK(attribute(f, "user.k") == "errno " + std::to_string(ENODATA));
  CHECK(error_of(::removexattr(f.c_str(), "user.k")) == ENODATA);
}

TEST_CASE("special files, owners, times and allocated space are as on a local disk") {
  if (!can_mount()) return;
  mounted_store s;
  const std::string p = s.mount / "p", f = s.mount / "f";
  CHECK(::mkfifo(p.c_str(), 0600) == 0);
  struct stat st {};
  CHECK(::lstat(p.c_str(), &st) == 0);
  CHECK(S_ISFIFO(st.st_mode));
  descriptor fd(f, O_RDWR | O_CREAT);
  const timespec times[2] = {{1000, 1}, {2000, 999'999'999}};
  CHECK(::pwrite(fd, "abc", 3, 0) == 3);
  CHECK(::futimens(fd, times) == 0);
  CHECK(::fsync(fd) == 0);
  CHECK(::stat(f.c_str(), &st) == 0);
  CHECK(st.st_mtim.tv_sec == 2000);
  CHECK(st.st_mtim.tv_nsec == 999'999'999);
  CHECK(st.st_atim.tv_nsec == 1);
  CHECK(::fallocate(fd, 0, 0, 10'000) == 0);
  CHECK(::fstat(fd, &st) == 0);
  CHECK(st.st_size == 10'000);
  CHECK(::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 200'000) == 0);
  CHECK(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 1) == 0);
  char text[4] = {};
  CHECK(::pread(fd, text, 3, 0) == 3);
  CHECK(std::string(text, 3) == std::string("a\0c", 3));
  CHECK(error_of(::fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096)) == EOPNOTSUPP);
  CHECK(::fstat(fd, &st) == 0);
  CHECK(st.st_size == 10'000);
  if (::geteuid() == 0) {
    CHECK(::fchown(fd, 1234, 4321) == 0);
    CHECK(::fstat(fd, &st) == 0);
    CHECK(st.st_uid == 1234);
    CHECK(st.st_gid == 4321);
  }
}

TEST_CASE("what was removed or replaced is shown, without a name, as long as somebody has it") {
  if (!can_mount()) return;
  mounted_store s;
  const auto at = [&](const char* name) { return (s.mount / name).string(); };
  REQUIRE(::mkfifo(at("fifo").c_str(), 0600) == 0);
  REQUIRE(::mkdir(at("folder").c_str(), 0700) == 0);
  REQUIRE(::mkdir(at("replaced").c_str(), 0700) == 0);
  REQUIRE(::mkdir(at("new").c_str(), 0700) == 0);
  REQUIRE(::symlink("target", at("link").c_str()) == 0);
  write(s.mount / "file", "text");
  descriptor fifo(at("fifo"), O_RDWR), folder(at("folder"), O_RDONLY), replaced(at("replaced"), O_RDONLY);
  descriptor link(at("link"), O_PATH | O_NOFOLLOW), file(at("file"), O_PATH);
  for (const char* name : {"fifo", "link", "file"}) REQUIRE(::unlink(at(name).c_str()) == 0);
  REQUIRE(::rmdir(at("folder").c_str()) == 0);
  REQUIRE(::rename(at("new").c_str(), at("replaced").c_str()) == 0);
  for (const auto& [fd, type] : {std::pair<int, mode_t>(fifo, S_IFIFO),
                                 {folder, S_IFDIR},
                                 {replaced, S_IFDIR},
                                 {link, S_IFLNK},
                                 {file, S_IFREG}}) {
    const auto st = asked(fd);
    CHECK((st.stx_mode & S_IFMT) == type);
    CHECK(st.stx_nlink == 0);
  }
  char target[10];
  CHECK(::readlinkat(link, "", target, sizeof target) == 6);
}

TEST_CASE("the first second of 1970 and times that the store cannot keep are times") {
  if (!can_mount()) return;
  mounted_store s;
  const std::string f = s.mount / "f";
  write(f, "text");
  const auto kept = [&](timespec t) {
    const timespec both[2] = {t, t};
    CHECK(::utimensat(AT_FDCWD, f.c_str(), both, 0) == 0);
    const auto st = asked(descriptor(f, O_PATH));
    CHECK(st.stx_atime.tv_sec == st.stx_mtime.tv_sec);
    return std::int64_t{st.stx_mtime.tv_sec};
  };
  CHECK(kept({0, 0}) == 0);
  CHECK(kept({-1, 0}) == -1);
  constexpr std::int64_t last = 9'223'372'036;
  CHECK(kept({last + 1, 0}) == last);
  CHECK(kept({last, 999'999'999}) == last);
  CHECK(kept({-2 * last, 0}) == -last - 1);
}

TEST_CASE("the time of the last change is not before that of bytes that are still in the memory of the mount") {
  if (!can_mount()) return;
  mounted_store s;
  descriptor f(s.mount / "f", O_WRONLY | O_CREAT);
  REQUIRE(::write(f, "text", 4) == 4);
  const auto st = asked(f);
  CHECK(std::pair(st.stx_ctime.tv_sec, st.stx_ctime.tv_nsec) >= std::pair(st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec));
}

TEST_CASE("a name that another program has begun to make is busy") {
  if (!can_mount()) return;
  mounted_store s;
  const auto core = s.core();
  storage::new_file begun;
  begun.striping = {0, 2, 4096};
  const auto made = core->make("f", begun);
  CHECK(error_of(::open((s.mount / "f").c_str(), O_WRONLY | O_CREAT, 0644)) == EBUSY);
  core->abandon(made);
  CHECK(descriptor(s.mount / "f", O_WRONLY | O_CREAT) >= 0);
}

TEST_CASE("locks hold between the programs that use one mount") {
  if (!can_mount()) return;
  mounted_store s;
  descriptor a(s.mount / "f", O_RDWR | O_CREAT), b(s.mount / "f", O_RDWR);
  CHECK(::flock(a, LOCK_EX) == 0);
  CHECK(error_of(::flock(b, LOCK_EX | LOCK_NB)) == EWOULDBLOCK);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_len = 10;
  CHECK(::fcntl(a, F_OFD_SETLK, &lock) == 0);
  CHECK(error_of(::fcntl(b, F_OFD_SETLK, &lock)) == EAGAIN);
}

TEST_CASE("what was written with O_DIRECT is in the store when the call returns, and loses nothing beside it") {
  if (!can_mount()) return;
  mounted_store s;
  constexpr std::size_t bytes = 1 << 20;
  const std::string before = pattern(2 * bytes);
  write(s.mount / "f", before);
  std::string data(bytes, 'd');
  auto* const memory = static_cast<char*>(std::aligned_alloc(4096, bytes));
  REQUIRE(memory != nullptr);
  std::memcpy(memory, data.data(), bytes);
  descriptor f(s.mount / "f", O_RDWR | O_DIRECT);
  const auto core = s.core();
  const auto stored = [&](std::uint64_t at, std::size_t n) {
    const auto there = core->open("f", storage::open_mode::read);
    std::string text(n, '\0');
    throw_if(there.file->read(request::contiguous(at, n), reinterpret_cast<std::byte*>(text.data())));
    return text;
  };
  // Nothing is closed or synced before the store is looked at.
  CHECK(::pwrite(f, memory, bytes / 2, 8192) == bytes / 2);
  CHECK(stored(0, 2 * bytes) == before.substr(0, 8192) + data.substr(0, bytes / 2) + before.substr(8192 + bytes / 2));
  CHECK(::pwrite(f, memory + 1, 1000, 4097) == 1000);  // not of whole blocks, as on a network file system
  CHECK(stored(4096, 1100) == before.substr(4096, 1) + std::string(1000, 'd') + before.substr(5097, 99));
  std::memset(memory, 0, bytes);
  CHECK(::pread(f, memory, bytes, 8192) == bytes);
  CHECK(std::string(memory, bytes) == data.substr(0, bytes / 2) + before.substr(8192 + bytes / 2, bytes / 2));
  // Past the end: the size is told at the close.
  CHECK(::pwrite(f, memory, bytes, 2 * bytes) == bytes);
  CHECK(f.close() == 0);
  CHECK(core->metadata().lookup("f").size == 3 * bytes);
  CHECK(stored(2 * bytes, bytes) == std::string(memory, bytes));
  {
    // Beside writes that the mount still has
    descriptor plain(s.mount / "f", O_RDWR), direct(s.mount / "f", O_RDWR | O_DIRECT);
    CHECK(::pwrite(plain, "plain", 5, 100) == 5);
    CHECK(::pwrite(direct, memory, 4096, 4096) == 4096);
    CHECK(::pread(direct, memory, 4096, 0) == 4096);
    CHECK(std::string(memory + 100, 5) == "plain");
  }
  CHECK(contents(s.mount / "f").substr(100, 5) == "plain");
  std::free(memory);
}

TEST_CASE("a file that is opened for reading is truncated where that is asked for") {
  if (!can_mount()) return;
  const mounted_store m;
  write(m.mount / "f", "something");
  descriptor f(m.mount / "f", O_RDONLY | O_TRUNC);
  struct stat now {};
  REQUIRE(::fstat(f, &now) == 0);
  CHECK(now.st_size == 0);
  CHECK(f.close() == 0);
  CHECK(contents(m.mount / "f").empty());
}

TEST_CASE("where root mounts, the kernel reads 1 MiB ahead in one request") {
  if (!can_mount()) return;
  const mounted_store m;
  struct stat st {};
  REQUIRE(::stat(m.mount.folder().c_str(), &st) == 0);
  const std::string device = std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev));
  const std::string ahead = "/sys/class/bdi/" + device + "/read_ahead_kb";
  if (::access(ahead.c_str(), W_OK) != 0) {
    std::cout << "SKIPPED: " << ahead << " cannot be written here" << std::endl;
    return;
  }
  std::ifstream in(ahead);
  int kib = 0;
  CHECK(in >> kib);
  CHECK(kib == 1024);
}

TEST_CASE("a place in a long folder is found again after a rewind") {
  if (!can_mount()) return;
  const mounted_store m;
  for (int i = 0; i < 2300; ++i) descriptor(m.mount / ("file" + std::to_string(10'000 + i)), O_WRONLY | O_CREAT);
  const descriptor folder(m.mount.folder(), O_RDONLY | O_DIRECTORY);
  alignas(dirent64) char some[4096];
  const auto next = [&] { return ::getdents64(folder, some, sizeof some); };
  off_t last = 0, end = 0;
  while (next() > 0) last = std::exchange(end, ::lseek(folder, 0, SEEK_CUR));
  REQUIRE(end == 2302);
  REQUIRE(::lseek(folder, 0, SEEK_SET) == 0);
  REQUIRE(next() > 0);
  REQUIRE(::lseek(folder, last, SEEK_SET) == last);
  REQUIRE(next() > 0);
  CHECK(std::string(reinterpret_cast<const dirent64*>(some)->d_name) == "file" + std::to_string(10'000 - 2 + last));
}

TEST_CASE("a mount that is killed loses nothing that was synced, and what it had reserved goes back") {
  if (!can_mount()) return;
  mounted_store s;
  const std::string data = pattern(5 << 20);
  {
    descriptor f(s.mount / "f", O_WRONLY | O_CREAT), gone(s.mount / "gone", O_WRONLY | O_CREAT);
    REQUIRE(::write(f, data.data(), data.size()) == static_cast<ssize_t>(data.size()));
    REQUIRE(::fsync(f) == 0);
    REQUIRE(::write(f, data.data(), data.size()) == static_cast<ssize_t>(data.size()));
    REQUIRE(::write(gone, data.data(), data.size()) == static_cast<ssize_t>(data.size()));
    REQUIRE(::unlink((s.mount / "gone").c_str()) == 0);
    s.mount.kill();
  }
  CHECK(s.core()->metadata().lookup("f").reserved > (5 << 20));
  {
    mount_process again(s.url, s.folder / "mount");
    CHECK(contents(again / "f").substr(0, data.size()) == data);
    CHECK_FALSE(fs::exists(again / "gone"));
    descriptor f(again / "f", O_WRONLY);
    CHECK(s.core()->metadata().lookup("f").reserved == 0);
  }
  CHECK(s.core()->metadata().unfinished().empty());
  CHECK(run_command(OOC_COMMAND " --store " + s.url + " verify", s.folder / "v").status == 0);
}

TEST_CASE("a mount runs in the background, from fstab's helper, and ends by umount and by signals") {
  if (!can_mount()) return;
  mountable_store s(false);
  const fs::path folder = s.folder / "mount";
  fs::create_directories(folder);
  const auto helped = run_command(
      "OOC=" OOC_COMMAND " " MOUNT_HELPER " " + s.url + " " + folder.string() + " -o rw,_netdev", s.folder / "helper");
  INFO(helped.err);
  REQUIRE(helped.status == 0);
  write(folder / "f", "bytes");
  {
    descriptor f(folder / "f", O_RDWR);
    CHECK(run_command(OOC_COMMAND " umount " + folder.string(), s.folder / "u").err.find("busy") != std::string::npos);
    CHECK(::pwrite(f, "B", 1, 0) == 1);
    CHECK(run_command(OOC_COMMAND " umount -l " + folder.string(), s.folder / "u").status == 0);
    CHECK(::pwrite(f, "Y", 1, 1) == 1);  // out of sight, and still there
  }
  {
    mount_process m(s.url, folder);
    REQUIRE(soon([&] { return contents(m / "f") == "BYtes"; }));
    descriptor f(m / "f", O_RDWR);
    CHECK(::pwrite(f, "T", 1, 2) == 1);
    CHECK(m.signal(SIGTERM) == 0);
  }
  CHECK(fs::is_empty(folder));
  mount_process m(s.url, folder, "ro");
  CHECK(contents(m / "f") == "BYTes");
  CHECK(error_of(::open((m / "f").c_str(), O_RDWR)) == EROFS);
}

TEST_CASE("mount(8) mounts a store by its type, by hand and from fstab") {
  if (!can_mount()) return;
  if (::geteuid() != 0) {
    std::cout << "mount(8) is not tried: that takes user 0" << std::endl;
    return;
  }
  mountable_store s(false);
  const auto o = run_command(
      std::string("unshare --mount --propagation private " MOUNT_BY_TYPE " " OOC_COMMAND " " MOUNT_HELPER " ") + s.url +
          " " + (s.folder / "mount").string(),
      s.folder / "by_type");
  INFO(o.out << o.err);
  CHECK(o.status == 0);
  CHECK(s.core()->metadata().lookup("by_hand").size == 8);
  CHECK(s.core()->metadata().lookup("from_fstab").size == 11);
}

TEST_CASE("what cannot be mounted, and what a mount does not do, is refused with its reason") {
  if (!can_mount()) return;
  mounted_store s;
  const auto refused = [&](const std::string& arguments, const std::string& named) {
    const auto o = run_command(OOC_COMMAND " mount " + arguments, s.folder / "refused");
    INFO(o.err);
    CHECK(o.status == 1);
    CHECK(o.err.find(named) != std::string::npos);
  };
  refused("local:" + (s.folder / "none").string() + " " + s.folder.path().string(), "none");
  refused(s.url + " " + (s.folder / "nowhere").string(), "not a folder");
  refused("-o colour " + s.url + " " + s.folder.path().string(), "-o colour is unknown");
  write(s.mount / "a", "");
  write(s.mount / "b", "");
  CHECK(error_of(::renameat2(AT_FDCWD, (s.mount / "a").c_str(), AT_FDCWD, (s.mount / "b").c_str(), RENAME_EXCHANGE)) ==
        EINVAL);
  CHECK(error_of(::renameat2(AT_FDCWD, (s.mount / "a").c_str(), AT_FDCWD, (s.mount / "b").c_str(), RENAME_NOREPLACE)) ==
        EEXIST);
  CHECK(error_of(::open(s.mount.folder().c_str(), O_TMPFILE | O_RDWR, 0600)) == EOPNOTSUPP);
}

#ifdef OOC_WITH_SERVERS
// A call on a mount with a deadline of 2 s, whose server is gone.
template <class Call>
void fails_in_time(Call call) {
  const auto began = std::chrono::steady_clock::now();
  const int why = error_of(call());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  CHECK((why == ETIMEDOUT || why == EIO));
  CHECK(took.count() < 2 + 5);
}

TEST_CASE("a server that does not come back is an error within the deadline, and the mount goes on") {
  if (!can_mount()) return;
  mountable_store s(true, "?deadline=2s");
  mount_process m(s.url, s.folder / "mount");
  const std::string data = pattern(1 << 20);
  write(m / "f", data);
  {
    descriptor f(m / "f", O_RDWR | O_DIRECT);
    s.running->send("iod-0", SIGKILL);
    void* memory = nullptr;
    REQUIRE(::posix_memalign(&memory, 4096, 1 << 20) == 0);
    fails_in_time([&] { return ::pread(f, memory, 1 << 20, 0); });
    CHECK(fs::exists(m / "f"));
    REQUIRE(s.running->up().status == 0);
    REQUIRE(soon([&] { return ::pread(f, memory, 1 << 20, 0) == 1 << 20; }));
    CHECK(std::memcmp(memory, data.data(), 1 << 20) == 0);
    std::free(memory);
  }
  {
    descriptor f(m / "g", O_WRONLY | O_CREAT);
    s.running->send("iod-1", SIGKILL);
    CHECK(::write(f, data.data(), data.size()) == 1 << 20);
    fails_in_time([&] { return ::fsync(f); });
    CHECK(fs::exists(m / "g"));
    REQUIRE(s.running->up().status == 0);
    REQUIRE(soon([&] { return ::pwrite(f, data.data(), data.size(), 0) == 1 << 20 && ::fsync(f) == 0; }));
    CHECK(f.close() == 0);
    CHECK(contents(m / "g") == data);
  }
  s.running->send("metad", SIGKILL);
  struct stat st {};
  fails_in_time([&] { return ::stat((m / "other").c_str(), &st); });
  REQUIRE(s.running->up().status == 0);
  REQUIRE(soon([&] { return contents(m / "f") == data; }));
}
#endif
