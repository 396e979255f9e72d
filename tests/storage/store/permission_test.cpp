// Tests of who may read which bytes of a store that several users share, in the file system and through the library.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "oocarray/file.hpp"
#include "storage/object/node_folder.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/store_url.hpp"
#include "support/node_fixture.hpp"
#include "support/other_user.hpp"

using namespace ooc;
using namespace ooc::testing;
namespace fs = std::filesystem;

namespace {

constexpr uid_t alice = 64001, bob = 64002, eve = 64003;
constexpr gid_t team = 64100;

/// A folder for a store, of alice and her group `team`.
struct team_folders {
  temporary_folder folder;
  fs::path n0 = folder.path() / "n0", n1 = folder.path() / "n1";
  std::string url = storage::local_url({n0, n1});

  explicit team_folders(mode_t mode) {
    ::chmod(folder.path().c_str(), 0755);
    for (const auto& n : {n0, n1}) {
      fs::create_directory(n);
      if (::chown(n.c_str(), alice, team) != 0) throw std::runtime_error("chown");
      ::chmod(n.c_str(), mode);
    }
  }

  std::vector<fs::path> files_of(storage::file_id id) const {
    std::vector<fs::path> all;
    for (const auto& n : {n0, n1}) {
      const storage::node_folder folder_of(n);
      for (const auto& f : {folder_of.data(id), folder_of.sums(id), folder_of.undo(id)})
        if (fs::exists(f)) all.push_back(f);
    }
    return all;
  }
};

std::string access_of(const fs::path& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return "missing";
  char text[64];
  std::snprintf(text, sizeof text, "%o %u:%u", st.st_mode & 07777, st.st_uid, st.st_gid);
  return text;
}

/// A file of two stripe objects with three parts each: data, checksums and, after the second write, an undo log.
storage::file_id make_file(const std::string& url, const std::string& path, std::uint32_t mode) {
  const auto s = store::open(url);
  auto f = file::create(s, path, {.size = 20'000, .striping = {.sf = 4096}, .mode = mode});
  f.write_at(0, std::vector<std::byte>(20'000, std::byte{7}));
  f.sync();
  f.write_at(100, std::vector<std::byte>(6000, std::byte{7}));
  return s.core()->metadata().lookup(path).id;
}

std::string read_it(const std::string& url, const std::string& path) {
  const auto s = store::open(url);
  std::vector<std::byte> b(20'000);
  file::open(s, path).read_at(0, b);
  return b == std::vector<std::byte>(20'000, std::byte{7}) ? "read" : "wrong";
}

/// The user and mode of every file of `id`, if all are alike.
std::string access_of_all(const team_folders& t, storage::file_id id) {
  const auto files = t.files_of(id);
  std::string first = files.empty() ? "none" : access_of(files.front());
  for (const auto& f : files)
    if (access_of(f) != first) return f.filename().string() + " differs: " + access_of(f) + ", not " + first;
  return first;
}

}  // namespace

TEST_CASE("another user reads no byte of a 0600 file, neither in the file system nor through the library") {
  if (!can_be_others()) return;
  team_folders t(0755);
  storage::file_id id = 2;
  other_user owner(alice, team, {},
                   {[&] { return std::to_string(make_file(t.url, "f", 0600)); }, [&] { return read_it(t.url, "f"); }});
  other_user other(bob, team, {},
                   {[&] {
                      std::string open;
                      for (const auto& f : t.files_of(id))
                        if (raw_read_error(f) != EACCES) open += f.string() + " ";
                      return open;
                    },
                    [&] { return read_it(t.url, "f"); }});
  CHECK(owner.run(0) == std::to_string(id));
  REQUIRE(t.files_of(id).size() == 6);
  CHECK(access_of_all(t, id) == "600 64001:64100");
  CHECK(other.run(0) == "");
  CHECK(other.run(1).find("may not read it") != std::string::npos);
  CHECK(owner.run(1) == "read");
}

TEST_CASE("chmod and a group let its members read through the library, and nobody else") {
  if (!can_be_others()) return;
  team_folders t(0755);
  storage::file_id id = 2;
  other_user owner(alice, alice, {team},
                   {[&] { return std::to_string(make_file(t.url, "f", 0600)); },
                    [&] {
                      const auto s = store::open(t.url);
                      s.set_owner("f", {}, team);
                      s.set_mode("f", 0640);
                      return std::string();
                    },
                    [&] {
                      store::open(t.url).set_mode("f", 0700);
                      return std::string();
                    }});
  const std::vector<other_user::step> reads{[&] { return read_it(t.url, "f"); },
                                            [&] {
                                              store::open(t.url).set_mode("f", 0777);
                                              return std::string();
                                            }};
  other_user member(bob, bob, {team}, reads), outsider(eve, eve, {}, reads);
  CHECK(owner.run(0) == std::to_string(id));
  CHECK(access_of_all(t, id) == "600 64001:64001");
  CHECK(member.run(0).find("may not read it") != std::string::npos);
  CHECK(owner.run(1) == "");
  CHECK(access_of_all(t, id) == "640 64001:64100");
  CHECK(member.run(0) == "read");
  CHECK(outsider.run(0).find("may not read it") != std::string::npos);
  CHECK(member.run(1).find("thrown") == 0);
  CHECK(owner.run(2) == "");
  CHECK(access_of_all(t, id) == "600 64001:64100");  // nobody executes them
  CHECK(member.run(0).find("may not read it") != std::string::npos);
}

TEST_CASE("root gives a file away, with stripe objects that a truncation has emptied") {
  if (!can_be_others()) return;
  team_folders t(0755);
  const auto id = make_file(t.url, "f", 0640);
  const auto s = store::open(t.url);
  auto f = file::open(s, "f", file_access::read_write);
  f.truncate(1000);
  s.set_owner("f", bob, team);
  CHECK(access_of_all(t, id) == "640 64002:64100");
  f.truncate(20'000);
  CHECK(access_of_all(t, id) == "640 64002:64100");
  CHECK(s.core()->metadata().lookup("f").owner == bob);
}

TEST_CASE("a change of mode that the file system refuses changes nothing") {
  if (!can_be_others()) return;
  team_folders t(0755);
  storage::file_id id = 2;
  other_user owner(alice, team, {},
                   {[&] { return std::to_string(make_file(t.url, "f", 0600)); },
                    [&] {
                      store::open(t.url).set_mode("f", 0644);
                      return std::string();
                    }});
  CHECK(owner.run(0) == std::to_string(id));
  REQUIRE(::chown(storage::node_folder(t.n1).sums(id).c_str(), bob, team) == 0);
  const std::string said = owner.run(1);
  CHECK(said.find("belongs to user 64002") != std::string::npos);
  CHECK(store::open(t.url).core()->metadata().lookup("f").mode == 0600);
  CHECK(access_of(storage::node_folder(t.n0).data(id)) == "600 64001:64100");
}

TEST_CASE("users of one group share a store, whatever their umask, and keep their own to themselves") {
  if (!can_be_others()) return;
  team_folders t(02770);
  const auto make = [&](const std::string& name, mode_t mask, std::uint32_t mode) {
    ::umask(mask);
    return std::to_string(make_file(t.url, name, mode));
  };
  other_user first(
      alice, alice, {team},
      {[&] { return make("a", 077, 0664); }, [&] { return read_it(t.url, "b"); }, [&] { return make("c", 002, 0666); },
       [&] {
         const auto s = store::open(t.url);
         s.set_owner("c", {}, team);
         return std::string();
       }});
  other_user second(bob, bob, {team},
                    {[&] { return make("b", 022, 0666); }, [&] { return read_it(t.url, "a"); },
                     [&] {
                       const auto s = store::open(t.url);
                       auto c = file::open(s, "c", file_access::read_write);
                       c.write_at(100, std::vector<std::byte>(6000, std::byte{7}));
                       c.sync();
                       return read_it(t.url, "c");
                     }});
  other_user outsider(eve, eve, {}, {[&] { return read_it(t.url, "b"); }});
  CHECK(first.run(0) == "2");
  // The umask is taken from the mode, in the entry and in the file system.
  CHECK(access_of_all(t, 2) == "600 64001:64001");
  CHECK(access_of(t.n0 / "shares") == "2770 64001:64100");
  CHECK(access_of(t.n0 / "shares/02") == "2770 64001:64100");
  CHECK(access_of(t.n0 / "metadata.sqlite") == "660 64001:64100");
  CHECK(access_of(t.n0 / "metadata.sqlite-wal") == "660 64001:64100");
  CHECK(second.run(0) == "3");
  CHECK(access_of_all(t, 3) == "644 64002:64002");
  CHECK(second.run(1).find("may not read it") != std::string::npos);
  CHECK(first.run(1) == "read");
  CHECK(outsider.run(0).find("thrown") == 0);
  // A file that the group may write: its undo log is there from the beginning, and its owner's.
  CHECK(first.run(2) == "4");
  CHECK(access_of_all(t, 4) == "664 64001:64001");
  CHECK(t.files_of(4).size() == 6);
  CHECK(first.run(3) == "");
  CHECK(access_of_all(t, 4) == "664 64001:64100");
  CHECK(second.run(2) == "read");
  CHECK(access_of_all(t, 4) == "664 64001:64100");
}
