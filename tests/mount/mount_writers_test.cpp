// Appends by one writer and by many, and what two mounts of one store see of each other.
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "mounted.hpp"
#include "oocarray/file.hpp"
#include "support/other_user.hpp"
#include "support/pauses.hpp"
#include "support/rounds.hpp"
#include "support/small_space.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

/// In a child, on a store in a folder with little space; `synced` bytes are before the others, of which several MiB are
/// on their way together.
int append_until_full(const fs::path& small, const fs::path& folder, std::uint64_t synced) {
  const std::string url = "local:" + (small / "n0").string();
  (void)ooc::store::open(url);
  const std::string piece = pattern(64 << 10);
  std::uint64_t taken = 0;
  {
    mount_process mount(url, folder);
    descriptor f(mount / "f", O_WRONLY | O_CREAT | O_APPEND);
    const auto append = [&](std::uint64_t until) {
      while (taken<until&& ::write(f, piece.data(), piece.size())> 0) taken += piece.size();
    };
    append(synced);
    EXPECT(::fsync(f) == 0);
    append(2 * small_space);
    EXPECT(f.close() != 0 || taken < 2 * small_space);
    EXPECT(mount.stop() == 0);
  }
  mount_process mount(url, folder);
  const std::string kept = contents(mount / "f");
  EXPECT(kept.size() >= synced);
  EXPECT(kept.size() < taken);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT(kept[i] == piece[i % piece.size()]);
  return 0;
}

}  // namespace

TEST_CASE("an append that finds no room for its last bytes keeps those before") {
  if (!can_mount()) return;
  const std::uint64_t synced = GENERATE(0, 2 << 20);
  CAPTURE(synced);
  temporary_folder here;
  fs::create_directories(here / "small");
  const int failed =
      in_small_space(here / "small", [&](bool) { return append_until_full(here / "small", here / "mount", synced); });
  CHECK(failed == 0);
}

TEST_CASE("appends of 1 MiB cost at most 12 syncs, up to 1 GiB of them, and leave nothing reserved") {
  if (!can_mount()) return;
  temporary_folder counting;
  write(counting / "count", std::string(8, '\0'));
  const std::string url = "local:" + (counting / "n0").string();
  (void)ooc::store::open(url);
  mount_process mount(url, counting / "mount", "",
                      {"LD_PRELOAD=" COUNT_SYNCS, "OOC_COUNT_SYNCS=" + (counting / "count").string()});
  const auto count = [&] {
    const std::string text = contents(counting / "count");
    std::uint64_t n = 0;
    std::memcpy(&n, text.data(), 8);
    return n;
  };
  const std::string mebibyte = pattern(1 << 20);
  const int appends = rounds(96, 1024);
  const auto before = count();
  {
    descriptor f(mount / "f", O_WRONLY | O_CREAT | O_APPEND);
    for (int i = 0; i < appends; ++i) REQUIRE(::write(f, mebibyte.data(), mebibyte.size()) == 1 << 20);
  }
  CHECK(mount.stop() == 0);
  CHECK(count() > before);
  CHECK(count() - before <= 12);
  const auto e = ooc::store::open(url).core()->metadata().lookup("f");
  CHECK(e.size == std::uint64_t(appends) << 20);
  CHECK(e.reserved == 0);
  CHECK(run_command(OOC_COMMAND " --store " + url + " verify", counting / "v").status == 0);
}

TEST_CASE("appends of many writers do not overlap") {
  if (!can_mount()) return;
  mounted_store s;
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      const int fd = ::open((s.mount / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      const std::string line(99, static_cast<char>('a' + w));
      for (int i = 0; i < 200; ++i) (void)!::write(fd, (line + "\n").data(), 100);
      ::close(fd);
    });
  for (auto& w : writers) w.join();
  const std::string all = contents(s.mount / "log");
  REQUIRE(all.size() == 4 * 200 * 100);
  for (std::size_t i = 0; i < all.size(); i += 100) {
    CHECK(all.substr(i, 99) == std::string(99, all[i]));
    if (all.substr(i, 99) != std::string(99, all[i])) break;
  }
}

TEST_CASE("appends beside syncs, look-ups and reads do not overlap") {
  if (!can_mount()) return;
  const mounted_store m;
  const fs::path log = m.mount / "log";
  write(log, "");
  std::atomic<bool> over{false};
  std::vector<std::thread> writers, readers;
  for (const std::size_t lines : {10'000, 700, 30, 1})
    writers.emplace_back([&log, lines] {
      std::string text;
      for (std::size_t i = 0; i < lines; ++i) text += std::string(99, lines == 1 ? 'a' : 'b') + "\n";
      const int fd = ::open(log.c_str(), O_WRONLY | O_APPEND);
      for (int i = 0; i < 150; ++i) {
        (void)!::write(fd, text.data(), text.size());
        if (i % 5 == 4) ::fsync(fd);
      }
      ::close(fd);
    });
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      const int fd = ::open(log.c_str(), O_RDONLY);
      char some[4096];
      struct stat now {};
      while (!over && ::stat(log.c_str(), &now) == 0) (void)!::pread(fd, some, sizeof some, now.st_size / 10 * 9);
      ::close(fd);
    });
  for (auto& w : writers) w.join();
  over = true;
  for (auto& r : readers) r.join();
  const std::string all = contents(log);
  REQUIRE(all.size() == std::size_t{150} * (10'000 + 700 + 30 + 1) * 100);
  std::size_t whole = 0, single = 0;
  for (std::size_t i = 0; i < all.size(); i += 100) {
    whole += all.compare(i, 100, std::string(99, all[i]) + "\n") == 0;
    single += all[i] == 'a';
  }
  CHECK(whole == all.size() / 100);
  CHECK(single == 150);
}

TEST_CASE("what one mount has closed or synced, another one reads that opens it then") {
  if (!can_mount()) return;
  mounted_store s;
  mount_process other(s.url, s.folder / "other");
  write(s.mount / "f", "first");
  CHECK(contents(other / "f") == "first");
  write(s.mount / "f", "second, longer");
  CHECK(contents(other / "f") == "second, longer");
  descriptor f(s.mount / "f", O_WRONLY);
  CHECK(::pwrite(f, "SECOND", 6, 0) == 6);
  CHECK(::fsync(f) == 0);
  CHECK(contents(other / "f") == "SECOND, longer");
  write(other / "g", "new");
  CHECK(::rename((other / "g").c_str(), (other / "f").c_str()) == 0);
  CHECK(contents(s.mount / "f") == "new");
}

TEST_CASE("what stays open on one mount shows what another has closed, soon, and what is mapped does so as well") {
  if (!can_mount()) return;
  mounted_store s;
  mount_process other(s.url, s.folder / "other");
  write(s.mount / "f", std::string(8192, 'a'));
  descriptor f(s.mount / "f", O_RDONLY);
  const auto* const mapped = static_cast<const volatile char*>(::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, f, 0));
  REQUIRE(static_cast<const volatile void*>(mapped) != MAP_FAILED);
  const auto seen = [&] {
    char c = 0;
    CHECK(::pread(f, &c, 1, 5000) == 1);
    return c;
  };
  REQUIRE(seen() == 'a');
  REQUIRE(mapped[5000] == 'a');
  write(other / "f", std::string(8192, 'b'));
  CHECK(soon([&] { return seen() == 'b'; }));
  CHECK(mapped[5000] == 'b');  // the page was dropped by the read
  // A native program tells no time of its writes: pages may stay until somebody opens the file here.
  auto native = file::open(ooc::store::open(s.url), "f", file_access::read_write);
  const std::string text(8192, 'c');
  native.write_at(0, std::as_bytes(std::span(text)));
  descriptor again(s.mount / "f", O_RDONLY);
  CHECK(seen() == 'c');
  CHECK(mapped[5000] == 'c');
  ::munmap(const_cast<char*>(mapped), 8192);
}

TEST_CASE("a name whose file is replaced all the time is found at each use, and who has the old file is told so") {
  if (!can_mount()) return;
  mounted_store s;
  mount_process other(s.url, s.folder / "other");
  write(other / "f", "text");
  descriptor old(s.mount / "f", O_PATH);
  std::atomic<bool> over{false};
  std::thread replacing([&] {
    while (!over) {
      write(other / "next", "text");
      fs::rename(other / "next", other / "f");
      random_pause(std::chrono::milliseconds(2));
    }
  });
  int wrong = 0;
  // The kernel looks for the name once more, not more often.
  const auto found = [&](bool done) { wrong += !done && errno != ESTALE; };
  const std::string f = s.mount / "f";
  for (int i = 0; i < 500; ++i) {
    const int fd = ::open(f.c_str(), O_RDONLY);
    found(fd >= 0);
    if (fd >= 0) ::close(fd);
    found(::chmod(f.c_str(), 0644) == 0);
    found(::listxattr(f.c_str(), nullptr, 0) >= 0);
  }
  over = true;
  replacing.join();
  CHECK(wrong == 0);
  CHECK(soon([&] {
    struct statx st {};
    return error_of(::statx(old, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st)) == ESTALE;
  }));
  CHECK(error_of(::open(("/proc/self/fd/" + std::to_string(old)).c_str(), O_RDONLY)) == ESTALE);
}

TEST_CASE("what another mount appends is read before bytes of this one that it was not told of") {
  if (!can_mount()) return;
  mounted_store s;
  mount_process other(s.url, s.folder / "other");
  descriptor mine(s.mount / "f", O_RDWR | O_CREAT | O_DIRECT);
  {
    descriptor buffered(s.mount / "f", O_WRONLY), theirs(other / "f", O_WRONLY);
    REQUIRE(::pwrite(buffered, "mine", 4, 100'000) == 4);
    descriptor cached(s.mount / "f", O_RDONLY);
    const auto seen = [](int fd) {
      std::string text(6, ' ');
      CHECK(::pread(fd, text.data(), 6, 50'000) == 6);
      return text;
    };
    CHECK(seen(cached) == std::string(6, '\0'));
    REQUIRE(::pwrite(theirs, "theirs", 6, 50'000) == 6);
    REQUIRE(theirs.close() == 0);
    CHECK(soon([&] { return seen(mine) == "theirs"; }));
    CHECK(soon([&] { return seen(cached) == "theirs"; }));
  }
  CHECK(contents(other / "f").substr(50'000, 6) == "theirs");
  CHECK(contents(other / "f").substr(100'000) == "mine");
}

TEST_CASE("what another mount appends is read after this one has told of its own bytes, with no look at it between") {
  if (!can_mount()) return;
  mounted_store s;
  mount_process other(s.url, s.folder / "other");
  descriptor mine(s.mount / "f", O_RDWR | O_CREAT), theirs(other / "f", O_WRONLY);
  REQUIRE(::pwrite(mine, "mine", 4, 100'000) == 4);
  const auto seen = [&] {
    std::string text(6, ' ');
    CHECK(::pread(mine, text.data(), 6, 50'000) == 6);
    return text;
  };
  CHECK(seen() == std::string(6, '\0'));
  REQUIRE(::pwrite(theirs, "theirs", 6, 50'000) == 6);
  REQUIRE(theirs.close() == 0);
  REQUIRE(::fsync(mine) == 0);
  CHECK(soon([&] { return seen() == "theirs"; }));
}

TEST_CASE("who makes a file that another user makes on another mount gets no more of it than its mode gives") {
  if (!can_mount() || !can_be_others()) return;
  const mountable_store s(false);
  fs::permissions(s.folder.path(), fs::perms::owner_all | fs::perms::others_exec);
  const auto make = [name = 0](const fs::path& folder) mutable {
    const int fd = ::open((folder / std::to_string(name++)).c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0) return errno == EACCES ? std::string() : std::string(std::strerror(errno));
    struct stat now {};
    const bool own = ::fstat(fd, &now) == 0 && now.st_uid == ::geteuid();
    ::close(fd);
    return own || ::geteuid() == 0 ? std::string() : "has opened a file of user " + std::to_string(now.st_uid);
  };
  other_user other(stranger, stranger, {}, {[make = make, at = s.folder / "other"]() mutable { return make(at); }});
  const mount_process mine(s.url, s.folder / "mine", "allow_other"), others(s.url, s.folder / "other", "allow_other");
  REQUIRE(::chmod(mine.folder().c_str(), 0777) == 0);
  auto make_mine = make;
  for (int round = 0; round < 200; ++round) {
    std::string result;
    std::thread maker([&] { result = make_mine(mine.folder()); });
    CHECK(other.run(0).empty());
    maker.join();
    CHECK(result.empty());
  }
}

TEST_CASE("what a mount writes after another has cut the file off is in it") {
  if (!can_mount()) return;
  const mounted_store m;
  const mount_process other(m.url, m.folder / "other");
  descriptor log(m.mount / "log", O_WRONLY | O_CREAT | O_APPEND);
  REQUIRE(::write(log, "first line\n", 11) == 11);
  REQUIRE(::fsync(log) == 0);
  REQUIRE(::truncate((other / "log").c_str(), 0) == 0);
  REQUIRE(soon([&] {
    struct stat now {};
    return ::fstat(log, &now) == 0 && now.st_size == 0;
  }));
  REQUIRE(::write(log, "second\n", 7) == 7);
  REQUIRE(::fsync(log) == 0);
  CHECK(contents(other / "log") == "second\n");

  descriptor stream(m.mount / "stream", O_WRONLY | O_CREAT);
  const std::string much = pattern(3 << 20);
  REQUIRE(::write(stream, much.data(), much.size()) == static_cast<ssize_t>(much.size()));
  REQUIRE(::fsync(stream) == 0);
  // What is sent before the cut goes with it; what is sent after it, by who does not know of it yet, is there.
  REQUIRE(::write(stream, much.data(), much.size()) == static_cast<ssize_t>(much.size()));
  REQUIRE(::truncate((other / "stream").c_str(), 0) == 0);
  CHECK(::fsync(stream) == 0);
  REQUIRE(::pwrite(stream, much.data(), much.size(), 0) == static_cast<ssize_t>(much.size()));
  REQUIRE(::fsync(stream) == 0);
  REQUIRE(::truncate((other / "stream").c_str(), 0) == 0);
  REQUIRE(::pwrite(stream, much.data(), much.size(), 0) == static_cast<ssize_t>(much.size()));
  CHECK(::fsync(stream) == 0);
  CHECK(contents(other / "stream") == much);
  REQUIRE(::pwrite(stream, "third", 5, 0) == 5);
  CHECK(::fsync(stream) == 0);
  CHECK(contents(other / "stream").substr(0, 5) == "third");
}
