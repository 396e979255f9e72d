// Disks that are full, and then not any more; and a store on a read-only mount.
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <iostream>

#include "attack/elements.hpp"
#include "attack/history.hpp"

namespace ooc::attack {

namespace {

namespace fs = std::filesystem;

/// Leaves so many bytes of the file system free, about.
void fill_disk(const fs::path& disk, std::uint64_t free) {
  const int fd = ::open((disk / "filler").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  // A writer may take some of the space meanwhile.
  for (int n = 0; n < 20; ++n) {
    const std::uint64_t now = fs::space(disk).available;
    if (now <= free || ::posix_fallocate(fd, 0, static_cast<off_t>(now - free)) == 0) break;
  }
  ::close(fd);
}

/// One program sees the disk full, goes on, and succeeds when there is room again.
void full_and_free_again(round& r, const fs::path& disk, const std::string& url) {
  store_options so;
  so.workers = 1;
  so.staging = 64_KiB;
  const store s = store::open(url, so);
  runtime rt{{.memory = 16_MiB}};
  const std::size_t n = r.between(20'000, 120'000);
  std::vector<std::uint64_t> plain(n, 3);
  array_options<std::uint64_t> options;
  options.block = 4096 << r.between(0, 4);
  options.sparse = true;
  options.fill = 3;
  options.shared = r.one_in(3);
  ooc_array<std::uint64_t, 1> a{rt, s, "a", create, {n}, options};
  fill_disk(disk, r.between(0, 2 * n * 8));

  std::uint64_t failures = 0;
  for (std::uint64_t epoch = 0, epochs = r.between(3, 12); epoch < epochs; ++epoch) {
    for (std::uint64_t k = r.between(1, 4); k > 0; --k) {
      const box<1> b = draw_box<1>(r.dice(), {n});
      for (std::size_t i = b.lower[0]; i < b.upper[0]; ++i) a[i] = plain[i] = r.dice()();
    }
    try {
      a.writeback(r.one_in(3) ? durable : durability::acknowledged);
    } catch (const io_error& e) {
      ++failures;
      if (e.code() != std::errc::no_space_on_device)
        throw finding(verdict::failed, std::string("a full disk reads: ") + e.what());
      if (a.dirty_blocks() == 0) throw finding(verdict::lost, "writeback() failed, and nothing is dirty any more");
    }
  }
  std::cout << failures << " writebacks failed" << std::endl;
  r.counts().refused += failures;
  fs::remove(disk / "filler");
  a.writeback(durable);
  r.counts().acknowledged_bytes += n * 8;
  r.counts().operations += n;
  for (int again = 0; again < 2; ++again) {
    a.invalidate();
    for (std::size_t i = 0; i < n; ++i)
      if (std::as_const(a)[i] != plain[i])
        throw finding(verdict::wrong, "after a full disk element " + std::to_string(i) + " reads as " +
                                          hex(std::as_const(a)[i]) + ", not " + hex(plain[i]));
    a.close();
    a = ooc_array<std::uint64_t, 1>{rt, s, "a", open};
  }
}

/// One program ends because of the full disk; what was acknowledged is there when there is room.
void ends_on_full_disk(round& r, const fs::path& disk, const std::string& url) {
  const history h(r.dice()(), r.between(5000, 60000), 60, r.one_in(2));
  writer_options o = draw_writer(r, url, 1);
  o.sparse = true;
  report_pipe told;
  const pid_t writer = r.in_child([&] {
    try {
      write_history(h, o, told, r.counts());
    } catch (const io_error& e) {
      std::cout << "the writer: " << e.what() << std::endl;
      ++r.counts().refused;
      if (e.code() != std::errc::no_space_on_device)
        throw finding(verdict::failed, std::string("a full disk reads: ") + e.what());
      return 0;
    }
    return 0;
  });
  told.writer_started();
  told.wait_for(r.between(0, 10), std::chrono::seconds(30));
  fill_disk(disk, r.between(0, h.elements() * 8));
  const int status = r.wait_for(writer, std::chrono::seconds(60), "a writer on a full disk");
  if (status != 0 && status != fatal_exit_status)
    throw finding(verdict::failed, "the writer on a full disk ended with status " + std::to_string(status));
  const std::uint64_t kept = told.last();
  fs::remove(disk / "filler");
  if (kept == 0) return;

  if (::mount(nullptr, disk.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0) {
    const pid_t reader = r.in_child([&] {
      try {
        check_history(h, o, {kept, kept + 1, true}, r);
      } catch (const error& e) {
        std::cout << "read-only: " << e.what() << std::endl;
        ++r.counts().refused;
      }
      return 0;
    });
    r.wait_for(reader, std::chrono::seconds(30), "opening a store on a read-only mount");
    ::mount(nullptr, disk.c_str(), nullptr, MS_REMOUNT, nullptr);
  }
  const pid_t checker = r.in_child([&] {
    check_history(h, o, {kept, kept + 1}, r);
    return 0;
  });
  if (const int s = r.wait_for(checker, std::chrono::seconds(60), "the checker"))
    throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
  verify_store(url, false);
}

}  // namespace

void full_disks(round& r) {
  const fs::path disk = r.folder() / "disk";
  fs::create_directory(disk);
  const std::string size = "size=" + std::to_string(r.between(4, 8)) + "m";
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, size.c_str()) != 0)
    throw finding(verdict::not_run, "a small tmpfs cannot be mounted: " + std::generic_category().message(errno));
  const std::string url = "local:" + (disk / "store").string();
  if (r.one_in(2))
    full_and_free_again(r, disk, url);
  else
    ends_on_full_disk(r, disk, url);
}

}  // namespace ooc::attack
