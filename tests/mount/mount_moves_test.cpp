// Tests of files that get other stripe objects while programs of a mount have them open.
#include <dirent.h>
#include <sys/statvfs.h>

#include "mounted.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

void restripe(const mountable_store& s, const std::string& options) {
  const auto o = run_command(OOC_COMMAND " --store " + s.url + " restripe -q " + options, s.folder / "restripe");
  INFO(o.err);
  REQUIRE(o.status == 0);
}

ino_t listed_number(const fs::path& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir(folder.c_str()), ::closedir);
  REQUIRE(all);
  for (const dirent* e = ::readdir(all.get()); e; e = ::readdir(all.get()))
    if (e->d_name[0] != '.') return e->d_ino;
  return 0;
}

void move_open_file(bool served) {
  const mountable_store s(served);
  mount_process mount(s.url, s.folder / "mount");
  write(mount / "f", "first\n");
  descriptor log(mount / "f", O_WRONLY | O_APPEND);
  const auto number = asked(log).stx_ino;
  for (const std::string where : {"--sn 1 --nn 1 f", "--sn 0 --nn 1 f"}) {
    REQUIRE(::write(log, "second\n", 7) == 7);
    restripe(s, where);
    CHECK(asked(log).stx_ino == number);
    REQUIRE(::write(log, "third\n", 6) == 6);
    descriptor again(mount / "f", O_RDONLY | O_DIRECT);
    CHECK(asked(again).stx_ino == number);
    CHECK(asked(again).stx_size == asked(log).stx_size);
  }
  CHECK(listed_number(mount.folder()) == number);
  CHECK(::fsync(log) == 0);
  CHECK(log.close() == 0);
  CHECK(contents(mount / "f") == "first\nsecond\nthird\nsecond\nthird\n");

  descriptor reader(mount / "f", O_RDONLY | O_DIRECT);
  restripe(s, "--sn 1 --nn 1 f");
  REQUIRE(::unlink((mount / "f").c_str()) == 0);
  struct statvfs removals_are_done {};
  REQUIRE(::statvfs(mount.folder().c_str(), &removals_are_done) == 0);
  char text[6] = {};
  CHECK(::pread(reader, text, 6, 0) == 6);
  CHECK(std::string(text, 6) == "first\n");
  CHECK(asked(reader).stx_nlink == 0);
  reader.close();
  CHECK(mount.stop() == 0);
  CHECK(s.core()->metadata().dead().empty());
  CHECK(s.core()->metadata().unfinished().empty());
}

}  // namespace

TEST_CASE("a file that is moved while it is open keeps its number, is appended to at its end, and is read on") {
  if (can_mount()) move_open_file(false);
}

#ifdef OOC_WITH_SERVERS
TEST_CASE("a file of a served store that is moved while it is open keeps its number and its bytes") {
  if (can_mount()) move_open_file(true);
}
#endif
