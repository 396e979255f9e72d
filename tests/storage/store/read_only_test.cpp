// Stores that are opened by who may not write them.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/object/node_folder.hpp"
#include "storage/store/store_check.hpp"
#include "storage/store/store_url.hpp"
#include "support/node_fixture.hpp"
#include "support/other_user.hpp"

using namespace ooc;
using namespace ooc::testing;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t size_of_a = 300'000;

std::vector<std::byte> pattern(std::size_t n, unsigned salt = 0) {
  std::vector<std::byte> b(n);
  for (std::size_t i = 0; i < n; ++i) b[i] = static_cast<std::byte>((i * 2654435761u >> 13) + salt);
  return b;
}

/// Two folders that everybody may pass and read.
struct shared_folders {
  temporary_folder folder;
  fs::path n0 = folder.path() / "store/n0", n1 = folder.path() / "store/n1";
  std::string url = storage::local_url({n0, n1});

  shared_folders() {
    ::chmod(folder.path().c_str(), 0755);
    fs::create_directories(n0);
    fs::create_directories(n1);
  }

  /// A store with a file `a` of bytes and an array `d/x` of 100 x 100 doubles, element (i, j) being i - j.
  void fill() const {
    const auto s = store::open(url);
    auto f = file::create(s, "a", {.size = size_of_a, .striping = {.sf = 8192}});
    f.write_at(0, pattern(size_of_a));
    f.sync();
    runtime rt{{.memory = 4_MiB}};
    ooc_array<double, 2> x{rt, s, "d/x", ooc::create, {100, 100}};
    for (std::size_t i = 0; i < 100; ++i)
      for (std::size_t j = 0; j < 100; ++j) x[i][j] = double(i) - double(j);
    x.writeback(durable);
  }

  /// As a store looks that was never opened by a program which leaves the log's files in place.
  void without_log_files() const {
    fs::remove(n0 / "metadata.sqlite-wal");
    fs::remove(n0 / "metadata.sqlite-shm");
  }

  /// Every path with its size, mode and time of change.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& e : fs::recursive_directory_iterator(folder.path() / "store")) {
      struct stat st {};
      ::stat(e.path().c_str(), &st);
      all[e.path()] = std::to_string(st.st_size) + " " + std::to_string(st.st_mode) + " " +
                      std::to_string(st.st_mtim.tv_sec) + "." + std::to_string(st.st_mtim.tv_nsec);
    }
    return all;
  }

  /// Fills the store, which is as before after the two steps of the reader, which succeed.
  void check_unchanged_by(other_user& reader, bool log_files) const {
    fill();
    if (!log_files) without_log_files();
    const auto before = contents();
    CHECK(reader.run(0) == "");
    CHECK(reader.run(1) == "");
    CHECK(contents() == before);
  }
};

std::string read_file(const store& s, const std::string& path, const std::vector<std::byte>& wanted) {
  std::vector<std::byte> b(wanted.size());
  if (file::open(s, path).read_at(0, b) != b.size()) return "'" + path + "' is too short";
  return b == wanted ? "" : "'" + path + "' reads wrong";
}

std::string names(const store& s, const std::string& path = "") {
  std::string all;
  for (const auto& e : s.core()->metadata().list(path)) all += e.path + " ";
  return all;
}

/// Says what `call` throws: "" where it names `named` and has this code, else what is wrong.
std::string refused(std::errc code, const std::string& named, const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    if (e.code() != code) return "wrong code " + e.code().message() + ": " + e.what();
    if (std::string(e.what()).find(named) == std::string::npos)
      return std::string("does not name ") + named + ": " + e.what();
    return "";
  }
  return "not refused: " + named;
}

/// Everything that reading means.
std::string read_all_of_it(const std::string& url) {
  const auto s = store::open(url);
  if (names(s) != "a d ") return "lists " + names(s);
  if (s.core()->metadata().lookup("a").size != size_of_a) return "wrong size";
  if (const auto bad = read_file(s, "a", pattern(size_of_a)); !bad.empty()) return bad;
  const auto r = storage::check_store(*s.core(), "", [](std::uint64_t, std::uint64_t) {});
  if (!r.clean()) return "verify: " + r.problems.front();
  if (r.files != 2) return "verify read too little";
  runtime rt{{.memory = 4_MiB}};
  const ooc_array<double, 2> x{rt, s, "d/x", ooc::open_read_only};
  for (std::size_t i = 0; i < 100; ++i)
    for (std::size_t j = 0; j < 100; ++j)
      if (x[i][j] != double(i) - double(j)) return "wrong element";
  return "";
}

/// Nothing that changes is done, and the message says why.
std::string refuse_to_change(const std::string& url, std::errc code, const std::string& named) {
  const auto s = store::open(url);
  std::string bad;
  bad += refused(code, named, [&] { file::create(s, "new", {.size = 1000, .striping = {.sf = 4096}}); });
  bad += refused(code, named, [&] { file::create(s, "empty", {.striping = {.sf = 4096}}); });
  bad += refused(code, named, [&] { file::open(s, "a", file_access::read_write); });
  bad += refused(code, named, [&] { s.core()->remove("a"); });
  bad += refused(code, named, [&] { s.core()->metadata().mkdir("e", 0755, true); });
  bad += refused(code, named, [&] { s.core()->metadata().rename("a", "b"); });
  bad += refused(code, named, [&] { s.core()->metadata().set_attribute("a", "k", "v"); });
  bad += refused(code, named, [&] { s.core()->metadata().set_mode("a", 0600); });
  runtime rt{{.memory = 4_MiB}};
  bad += refused(code, named, [&] { ooc_array<double, 2> x(rt, s, "d/x", ooc::open); });
  return bad;
}

}  // namespace

TEST_CASE("a store is read by who may write nothing of it, and stays as it is") {
  if (!can_be_others()) return;
  shared_folders f;
  bool log_files = GENERATE(true, false);
  CAPTURE(log_files);
  other_user reader(stranger, stranger, {},
                    {[&] { return read_all_of_it(f.url); },
                     [&] { return refuse_to_change(f.url, std::errc::permission_denied, "user 65534"); }});
  f.check_unchanged_by(reader, log_files);
}

TEST_CASE("a store is read from a read-only mount, and stays as it is") {
  if (!can_be_others()) return;
  shared_folders f;
  bool log_files = GENERATE(true, false);
  CAPTURE(log_files);
  other_user reader(other_user::on_read_only_mount{f.folder.path() / "store"},
                    {[&] { return read_all_of_it(f.url); },
                     [&] { return refuse_to_change(f.url, std::errc::read_only_file_system, "read-only"); }});
  f.check_unchanged_by(reader, log_files);
}

TEST_CASE("a reader sees at its next call what a writer does meanwhile") {
  if (!can_be_others()) return;
  shared_folders f;
  const bool log_files = GENERATE(true, false), mounted = GENERATE(true, false);
  CAPTURE(log_files, mounted);
  std::optional<store> s;  // of the reader
  const auto next = pattern(50'000, 7);
  const std::vector<other_user::step> steps{
      [&] {
        s = store::open(f.url);
        return names(*s);
      },
      [&] { return names(*s); },
      [&] { return read_file(*s, "b", next); },
      [&] { return read_file(*s, "a", pattern(size_of_a)); },
  };
  const auto r = mounted
                     ? std::make_unique<other_user>(other_user::on_read_only_mount{f.folder.path() / "store"}, steps)
                     : std::make_unique<other_user>(stranger, stranger, std::vector<gid_t>{}, steps);
  f.fill();
  if (!log_files) f.without_log_files();
  CHECK(r->run(0) == "a d ");
  {
    const auto w = store::open(f.url);
    CHECK(r->run(1) == "a d ");
    auto b = file::create(w, "b", {.size = next.size(), .striping = {.sf = 4096}});
    CHECK(r->run(1) == "a b d ");
    b.write_at(0, next);
    CHECK(r->run(2) == "");
    w.core()->metadata().sync();
    CHECK(r->run(3) == "");
  }
  CHECK(r->run(1) == "a b d ");
  CHECK(r->run(2) == "");
  {
    const auto w = store::open(f.url);
    w.core()->remove("b");
  }
  CHECK(r->run(1) == "a d ");
  CHECK(r->run(3) == "");
}

TEST_CASE("a store whose writer was killed is read with all that was acknowledged") {
  if (!can_be_others()) return;
  shared_folders f;
  other_user reader(
      stranger, stranger, {},
      {[&] {
         const auto s = store::open(f.url);
         if (names(s) != "a b d ") return "lists " + names(s);
         return read_file(s, "b", pattern(10'000));
       },
       [&] { return refused(std::errc::permission_denied, "metadata.sqlite-wal", [&] { store::open(f.url); }); }});
  f.fill();
  const pid_t writer = ::fork();
  if (writer == 0) {
    const auto s = store::open(f.url);
    file::create(s, "b", {.size = 10'000, .striping = {.sf = 4096}}).write_at(0, pattern(10'000));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(writer, nullptr, 0);
  REQUIRE(fs::file_size(f.n0 / "metadata.sqlite-wal") > 0);
  CHECK(reader.run(0) == "");
  // A copy without the index of the log: what the log holds must neither be ignored nor guessed at.
  fs::remove(f.n0 / "metadata.sqlite-shm");
  CHECK(reader.run(1) == "");
  { const auto mended = store::open(f.url); }
  CHECK(reader.run(0) == "");
}

TEST_CASE("an undo journal that waits is named to who may only read, and applied by who may write") {
  if (!can_be_others()) return;
  shared_folders f;
  std::uint64_t id = 0;
  other_user reader(stranger, stranger, {},
                    {[&] {
                       const auto s = store::open(f.url);
                       return refused(std::errc::permission_denied, ".undo",
                                      [&] { (void)read_file(s, "a", pattern(size_of_a)); });
                     },
                     [&] { return read_file(store::open(f.url), "a", pattern(size_of_a)); }});
  f.fill();
  {
    // Part of a chunk, after a sync: its old image is logged.  Then the power is lost before the next one.
    const auto s = store::open(f.url);
    auto a = file::open(s, "a", file_access::read_write);
    a.write_at(10, pattern(20, 99));
    id = s.core()->metadata().lookup("a").id;
  }
  const auto node = fs::exists(storage::node_folder(f.n0).undo(id)) ? f.n0 : f.n1;
  REQUIRE(fs::exists(storage::node_folder(node).undo(id)));
  change_boot(node, id);
  CHECK(reader.run(0) == "");
  {
    const auto s = store::open(f.url);
    CHECK(read_file(s, "a", pattern(size_of_a)) == "");
  }
  CHECK(reader.run(1) == "");
}

TEST_CASE("what was written and not synced before a restart is read where no undo journal waits") {
  if (!can_be_others()) return;
  shared_folders f;
  other_user reader(stranger, stranger, {}, {[&] { return read_file(store::open(f.url), "b", pattern(10'000)); }});
  f.fill();
  std::uint64_t id = 0;
  {
    const auto s = store::open(f.url);
    file::create(s, "b", {.size = 10'000, .striping = {.nn = 1, .sf = 65536}}).write_at(0, pattern(10'000));
    id = s.core()->metadata().lookup("b").id;
  }
  change_boot(fs::exists(storage::node_folder(f.n0).sums(id)) ? f.n0 : f.n1, id);
  CHECK(reader.run(0) == "");
}

TEST_CASE("a reader never sees a torn chunk of a writer that is at work") {
  if (!can_be_others()) return;
  shared_folders f;
  other_user reader(
      stranger, stranger, {}, {[&] {
        const auto s = store::open(f.url);
        const auto a = file::open(s, "hot");
        std::vector<std::byte> b(65536);
        for (int round = 0; round < 300; ++round) {
          a.read_at(0, b);
          for (std::size_t i = 0; i < b.size(); i += 4096)
            if (std::vector<std::byte>(4096, b[i]) !=
                std::vector<std::byte>(b.begin() + std::ptrdiff_t(i), b.begin() + std::ptrdiff_t(i + 4096)))
              return std::string("torn");
        }
        return std::string();
      }});
  f.fill();
  const auto s = store::open(f.url);
  auto hot = file::create(s, "hot", {.size = 65536, .striping = {.sf = 8192}});
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (unsigned round = 0; !done; ++round)
      hot.write_at(0, std::vector<std::byte>(65536, static_cast<std::byte>(round)));
  });
  CHECK(reader.run(0) == "");
  done = true;
  writer.join();
}

TEST_CASE("a reader waits for a writer that is just changing the index of the log") {
  if (!can_be_others()) return;
  shared_folders f;
  // The index has two headers, which differ while it is changed.
  other_user writers_hand(0, 0, {}, {[&] {
                            std::fstream index(f.n0 / "metadata.sqlite-shm",
                                               std::ios::in | std::ios::out | std::ios::binary);
                            const auto was = index.seekg(8).get();
                            for (int i = 0; i < 40'000 && index; ++i)
                              index.seekp(8).put(static_cast<char>(i % 2 == 0 ? ~was : was)).flush();
                            return std::string(index ? "" : "the index cannot be written");
                          }});
  other_user reader(stranger, stranger, {}, {[&] { return names(store::open(f.url)) == "a d " ? "" : "lists wrong"; }});
  f.fill();
  const auto writer = store::open(f.url);
  auto changing = std::async(std::launch::async, [&] { return writers_hand.run(0); });
  do REQUIRE(reader.run(0) == "");
  while (changing.wait_for(std::chrono::seconds(0)) != std::future_status::ready);
  CHECK(changing.get() == "");
}

TEST_CASE("readers that come and go beside writers that come and go see whole states of the name space") {
  if (!can_be_others()) return;
  shared_folders f;
  // One file that has one of two names, and bytes that say how often it was renamed.
  const auto look = [&](const store& s) -> std::string {
    std::string moving;
    for (const auto& e : s.core()->metadata().list("moving")) moving += e.path + " ";
    return moving == "moving/x " || moving == "moving/y " ? "" : "lists " + moving;
  };
  std::vector<std::unique_ptr<other_user>> readers;
  const std::vector<other_user::step> steps{[&] {
    for (int round = 0; round < 60; ++round) {
      const auto s = store::open(f.url);
      for (int i = 0; i < 10; ++i)
        if (const auto bad = look(s); !bad.empty()) return bad;
      if (const auto bad = read_file(s, "a", pattern(size_of_a)); !bad.empty()) return bad;
    }
    return std::string();
  }};
  readers.push_back(std::make_unique<other_user>(stranger, stranger, std::vector<gid_t>{}, steps));
  readers.push_back(std::make_unique<other_user>(other_user::on_read_only_mount{f.folder.path() / "store"}, steps));
  f.fill();
  {
    const auto s = store::open(f.url);
    s.core()->metadata().mkdir("moving", 0755, false);
    file::create(s, "moving/x", {.size = 100, .striping = {.sf = 4096}});
  }
  f.without_log_files();
  std::vector<std::future<std::string>> answers;
  for (auto& r : readers) answers.push_back(std::async(std::launch::async, [&r] { return r->run(0); }));
  const auto reading = [&] {
    return std::any_of(answers.begin(), answers.end(),
                       [](const auto& a) { return a.wait_for(std::chrono::seconds(0)) != std::future_status::ready; });
  };
  for (unsigned round = 0; round < 3 || reading(); ++round) {
    const auto s = store::open(f.url);
    auto& m = s.core()->metadata();
    for (int i = 0; i < 7; ++i) {
      m.rename("moving/x", "moving/y");
      m.rename("moving/y", "moving/x");
    }
    if (round % 3 == 0) m.sync();
  }
  for (auto& a : answers) CHECK(a.get() == "");
}
