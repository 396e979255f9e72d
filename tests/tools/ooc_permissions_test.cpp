// The ooc command and the servers' folders, as other users of the host find them.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "support/other_user.hpp"
#include "support/shell.hpp"

using namespace ooc::testing;

namespace {

/// Paths below `folder` (itself included) that group or others have a right to.
std::string open_to_others(const fs::path& folder) {
  std::string all;
  const auto look = [&](const fs::path& path) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) == 0 && (st.st_mode & 077) != 0) all += path.string() + " ";
  };
  look(folder);
  for (const auto& e : fs::recursive_directory_iterator(folder)) look(e.path());
  return all;
}

outcome as_stranger(const shell& sh, const std::string& arguments) {
  return run_command("cd / && setpriv --reuid 65534 --regid 65534 --clear-groups env OOC_STORE=" + sh.url() +
                         " " OOC_COMMAND " " + arguments,
                     (sh.folder / "output").string());
}

mode_t mode_of(const fs::path& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

}  // namespace

TEST_CASE("folders of servers are closed to other users of the host, also those that were open") {
  temporary_folder folder;
  ::chmod(folder.path().c_str(), 0755);
  ::umask(022);
  servers s(folder / "cluster", 2);
  write(folder / "a", numbered(300'000));
  const auto ooc = [&](const std::string& arguments) {
    return run_command(OOC_COMMAND " --store " + s.url() + " " + arguments, (folder / "output").string());
  };
  REQUIRE(ooc("import " + (folder / "a").string() + " a --type u1 --shape 300000").status == 0);
  for (const char* name : {"metad", "iod-0", "iod-1"}) {
    CAPTURE(name);
    REQUIRE(fs::exists(s.dir() / name));
    CHECK(open_to_others(s.dir() / name) == "");
  }
  // As an earlier release has left them.
  REQUIRE(s.down().status == 0);
  for (const char* name : {"metad", "iod-0", "iod-1"}) {
    for (const auto& e : fs::recursive_directory_iterator(s.dir() / name))
      ::chmod(e.path().c_str(), e.is_directory() ? 0755 : 0644);
    ::chmod((s.dir() / name).c_str(), 0755);
  }
  REQUIRE(s.up().status == 0);
  for (const char* name : {"metad", "iod-0", "iod-1"}) CHECK(open_to_others(s.dir() / name) == "");
  CHECK(ooc("verify -q").status == 0);
  REQUIRE(ooc("export a " + (folder / "b").string() + " --format raw").status == 0);
  CHECK((contents(folder / "b") == numbered(300'000)));
}

TEST_CASE("a server refuses a folder of another user that is open to others") {
  if (!can_be_others()) return;
  temporary_folder folder;
  ::chmod(folder.path().c_str(), 0755);
  const fs::path iod = folder / "iod";
  fs::create_directory(iod);
  ::chmod(iod.c_str(), 0777);
  const outcome o = run_command(
      "timeout 20 setpriv --reuid 65534 --regid 65534 --clear-groups " OOC_IOD " --node 0 --folder " + iod.string(),
      (folder / "output").string());
  CHECK(o.status == 1);
  CHECK(o.err.find("belongs to user 0") != std::string::npos);
}

TEST_CASE("ooc shows a store to who may only read it", "[local]") {
  if (!can_be_others()) return;
  shell sh;
  ::chmod(sh.folder.path().c_str(), 0755);
  write(sh.folder / "a", numbered(100'000));
  sh.ok("mkdir d");
  sh.ok("import a d/a --type u1 --shape 100000");
  CHECK(as_stranger(sh, "ls -r").out.find("d/a") != std::string::npos);
  CHECK(as_stranger(sh, "stat d/a").status == 0);
  CHECK(as_stranger(sh, "info").status == 0);
  CHECK(as_stranger(sh, "df").status == 0);
  CHECK(as_stranger(sh, "verify -q").status == 0);
  CHECK((as_stranger(sh, "export d/a - --format raw").out == numbered(100'000)));
  fs::create_directory(sh.folder / "mine");
  REQUIRE(::chown((sh.folder / "mine").c_str(), 65534, 65534) == 0);
  const std::string own = "local:" + (sh.folder / "mine").string();
  REQUIRE(as_stranger(sh, "init --store " + own).status == 0);
  const outcome copied = as_stranger(sh, "cp -q -r --to " + own + " d d");
  INFO(copied.err);
  CHECK(copied.status == 0);
  CHECK((run_command(OOC_COMMAND " --store " + own + " export d/a - --format raw", (sh.folder / "o").string()).out ==
         numbered(100'000)));
  for (const char* change : {"rm d/a", "mkdir e", "mv d/a b", "chmod 600 d/a", "attr set d/a k v"}) {
    CAPTURE(change);
    const outcome o = as_stranger(sh, change);
    CHECK(o.status == 1);
    CHECK(o.err.find("open for reading only, for user 65534 may not write") != std::string::npos);
  }
}

TEST_CASE("a stream that nobody may write is copied by who is not root, and the copy has its mode") {
  if (!can_be_others()) return;
  temporary_folder folder;
  ::chmod(folder.path().c_str(), 0755);
  servers s(folder / "cluster", 1);
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0444) == 0);
  ::chmod((folder / "fifo").c_str(), 0444);
  const std::string fifo = (folder / "fifo").string();
  const auto run = [&](const std::string& line) { return run_command(line, (folder / "output").string()); };
  const std::string ooc = OOC_COMMAND " ",
                    theirs = "setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/ " + ooc;
  const auto copied_to = [&](const std::string& url) {
    const outcome o = run("(timeout 60 sh -c 'printf abc > " + fifo + "' & " + theirs + "cp -q file:" + fifo + " " +
                          url + "fifo; status=$?; wait; exit $status)");
    INFO(url << ": " << o.err);
    CHECK(o.status == 0);
    CHECK(run(ooc + "cat " + url + "fifo").out == "abc");
    CHECK(run(ooc + "ls -l " + url + "fifo").out.find("-r--r--r--") != std::string::npos);
  };
  REQUIRE(run(ooc + "chmod 777 / --store " + s.url()).status == 0);
  copied_to(s.url());
  fs::create_directory(folder / "mine");
  REQUIRE(::chown((folder / "mine").c_str(), stranger, stranger) == 0);
  const std::string own = "local:" + (folder / "mine").string();
  REQUIRE(run(theirs + "init --store " + own).status == 0);
  copied_to(own + "/");
}

TEST_CASE("a plain folder that cannot be listed is named, and what is beside it is copied and moved", "[local]") {
  if (!can_be_others()) return;
  shell sh;
  ::chmod(sh.folder.path().c_str(), 0755);
  const fs::path mine = sh.folder / "mine", tree = mine / "tree";
  fs::create_directories(tree / "closed");
  write(tree / "closed/x", "x");
  write(tree / "open", "12345678");
  ::chmod((tree / "closed").c_str(), 0700);
  for (const fs::path& p : {mine, tree, tree / "open"}) REQUIRE(::chown(p.c_str(), stranger, stranger) == 0);
  const std::string own = "local:" + (mine / "store").string();
  REQUIRE(as_stranger(sh, "init --store " + own).status == 0);
  for (const std::string command : {"cp -q -r ", "mv -q "}) {
    const outcome o = as_stranger(sh, command + "file:" + tree.string() + " " + own + "/" + command.substr(0, 2));
    INFO(command << o.err);
    CHECK(o.status == 1);
    CHECK(o.err == "ooc: '" + (tree / "closed").string() + "' cannot be listed: Permission denied\n");
  }
  CHECK(as_stranger(sh, "ls -r --store " + own).out == "cp/\ncp/closed/\ncp/open\nmv/\nmv/closed/\nmv/open\n");
  CHECK_FALSE(fs::exists(tree / "open"));
  CHECK(fs::exists(tree / "closed/x"));
}

TEST_CASE("ooc chmod and chown take stripe objects with them", "[local]") {
  shell sh;
  write(sh.folder / "a", numbered(300'000));
  sh.ok("import a a --type u1 --shape 300000");
  const auto modes_are = [&](mode_t mode) {
    int found = 0;
    for (const char* node : {"n0", "n1"})
      for (const auto& e : fs::recursive_directory_iterator(sh.folder / node / "shares"))
        if (e.is_regular_file()) {
          ++found;
          CHECK(mode_of(e.path()) == mode);
        }
    CHECK(found >= 2);
  };
  modes_are(0644);
  sh.ok("chmod 600 a");
  modes_are(0600);
  sh.ok("chmod -r 750 a");
  modes_are(0640);
  // Symbolic modes, as of chmod(1): several at once, from left to right.
  sh.ok("chmod u=rw,g-w+x,o= a");
  CHECK(sh.ok("stat a").find("-rw-r-x---") != std::string::npos);
  sh.ok("chmod a+r a");
  CHECK(sh.ok("stat a").find("-rw-r-xr--") != std::string::npos);
  sh.ok("chmod go=u,-x,+w a");
  CHECK(sh.ok("stat a").find("-rw-rw-rw-") != std::string::npos);
  modes_are(0666);
  sh.ok("mkdir d");
  sh.ok("import a d/a --type u1 --shape 300000");
  sh.ok("chmod 600 d/a");
  sh.ok("chmod -r go-rwx,a+X d");
  CHECK(sh.ok("stat d").find("rwx--x--x") != std::string::npos);
  CHECK(sh.ok("stat d/a").find("-rw-------") != std::string::npos);
  for (const char* wrong : {"u+q", "x", "u", "u+w,", "8", "u+w;g+w", ""})
    sh.refused(std::string("chmod '") + wrong + "' a", "is not a mode");
  if (!can_be_others()) return;
  sh.ok("chown nobody:nogroup a");
  CHECK(sh.ok("stat a").find("owner 65534, group 65534") != std::string::npos);
  sh.refused("chown no-such-user-here a", "no-such-user-here");
  sh.refused("chown :no-such-group-here a", "no-such-group-here");
  sh.ok("chown 4711:4712 a d/a");
  for (const auto& e : fs::recursive_directory_iterator(sh.folder / "n0" / "shares"))
    if (e.is_regular_file()) {
      struct stat st {};
      REQUIRE(::stat(e.path().c_str(), &st) == 0);
      CHECK(st.st_uid == 4711);
      CHECK(st.st_gid == 4712);
    }
}
