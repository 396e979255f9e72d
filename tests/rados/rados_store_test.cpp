// A store in RADOS, on the cluster that CEPH_CONF names: what is its own.  The suites of arrays and blocks run there
// too.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "oocarray/store.hpp"
#include "storage/base/in_flight.hpp"
#include "storage/rados/file_object.hpp"
#include "storage/rados/possession.hpp"
#include "storage/rados/rados_node.hpp"
#include "storage/rados/rados_pool.hpp"
#include "storage/rados/rados_url.hpp"
#include "storage/store/store_check.hpp"
#include "support/faulty_proxy.hpp"
#include "support/modelled_file.hpp"
#include "support/random_seed.hpp"
#include "support/run_command.hpp"
#include "support/server_process.hpp"
#include "support/soon.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;

namespace {

/// A namespace that nobody else uses.
std::string url_of(const std::string& name, const std::string& options = "") {
  return "rados:ooc/" + name + "-" + std::to_string(::getpid()) + options;
}

std::vector<std::string> objects_of(const std::string& url) {
  storage::rados_location where;
  where.pool = "ooc";
  where.name_space = url.substr(url.find('/') + 1);
  std::vector<std::string> all;
  storage::rados_pool::connect(where)->for_each_object([&](const std::string& name) {
    if (storage::file_of(name) != 0) all.push_back(name);
    return true;
  });
  return all;
}

std::vector<std::byte> numbers(std::size_t n, unsigned first = 0) {
  std::vector<std::byte> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = static_cast<std::byte>((i * 7 + first) % 251);
  return all;
}

}  // namespace

TEST_CASE("what is stored in RADOS is there when the store is opened again, and gone when it is removed") {
  const std::string url = url_of("again");
  const auto bytes = numbers(9'000'001);
  {
    auto s = store::open(url);
    CHECK(s.url() == url);
    CHECK(s.nodes() == 1);
    auto f = file::create(s, "f");
    f.write(bytes);
    f.sync();
    CHECK(objects_of(url).size() == 4);  // of 4 MiB, and what says so
  }
  {
    auto s = store::open(url, {.create = false});
    auto f = file::open(s, "f", file_access::read_only);
    std::vector<std::byte> back(bytes.size());
    REQUIRE(f.read_at(0, back) == back.size());
    CHECK(back == bytes);
    f.close();
    const auto found = storage::check_store(*s.core(), "", [](std::uint64_t, std::uint64_t) {});
    CHECK(found.problems.empty());
    CHECK(found.chunks >= bytes.size() / 4096);
    s.remove("f");
  }
  CHECK(objects_of(url).empty());
}

TEST_CASE("a process has a store in RADOS open once, however often it opens it") {
  const std::string url = url_of("once");
  auto one = store::open(url), other = store::open(url);
  one.mkdir("x");
  CHECK(other.exists("x"));
}

TEST_CASE("elements that were never written have the fill value, beside those that were, and after a cut") {
  runtime rt({.memory = 64_MiB});
  auto s = store::open(url_of("fill"));
  constexpr std::size_t n = 3'000'000;  // of 4 bytes: three objects
  ooc_array<int, 1> a(rt, s, "a", create, {n}, {.fill = -7, .max_extents = {2 * n}});
  CHECK(a[n - 1] == -7);  // no object is there
  a[5] = 1;
  a[1'500'000] = 2;
  a.writeback(durable);
  a.resize({1'500'001});
  a.resize({2 * n});
  a.invalidate();
  CHECK(a[4] == -7);
  CHECK(a[5] == 1);
  CHECK(a[1'500'000] == 2);
  CHECK(a[1'500'001] == -7);
  CHECK(a[2 * n - 1] == -7);
}

TEST_CASE("random writes, reads, resizes and reopenings in RADOS equal a plain array") {
  const std::uint64_t seed = testing::random_seed("random_life_in_rados");
  storage::rados_location where;
  where.pool = "ooc";
  std::uint64_t n = 0;
  for (const std::uint64_t sf : {65536, 3 << 20})
    for (const std::size_t element : {0, 7}) {
      CAPTURE(sf, element);
      where.name_space = "life-" + std::to_string(::getpid()) + "-" + std::to_string(n);
      testing::random_life(
          testing::make_shape(77, {0, 1, sf}, 13'000'003, n % 2 == 0, testing::pattern(element)),
          [&](const testing::fs::path&) { return storage::make_rados_node(storage::rados_pool::connect(where)); }, 120,
          seed + n);
      ++n;
    }
}

TEST_CASE("random commits and rollbacks in RADOS equal two plain arrays") {
  const std::uint64_t seed = testing::random_seed("commits_in_rados");
  storage::rados_location where;
  where.pool = "ooc";
  where.name_space = "snapshots-" + std::to_string(::getpid());
  const std::size_t element = seed % 2 * 7;
  auto shape = std::make_shared<storage::file_shape>(
      *testing::make_shape(77, {0, 1, 65536}, 9'000'003, true, testing::pattern(element)));
  shape->commits = true;
  testing::random_life(
      shape, [&](const testing::fs::path&) { return storage::make_rados_node(storage::rados_pool::connect(where)); },
      60, seed);
}

TEST_CASE("a reader of an array with commits in RADOS sees one commit, and the next after the writer's") {
  runtime rt({.memory = 32_MiB});
  auto s = store::open(url_of("commits"));
  ooc_array<int, 1> a(rt, s, "a", create, {3'000'000}, {.commits = true});
  a[7] = 1;
  ooc::commit({&a});
  a[7] = 2;
  a[2'999'999] = 3;
  a.writeback();
  {
    ooc_array<int, 1> seen(rt, s, "a", open_read_only);
    CHECK(seen[7] == 1);
    CHECK(seen[2'999'999] == 0);
  }
  ooc::commit({&a});
  a[7] = 9;
  a.close();
  ooc_array<int, 1> again(rt, s, "a", ooc::open);  // what was not committed is taken back
  CHECK(again[7] == 2);
  CHECK(again[2'999'999] == 3);
}

TEST_CASE(
    "what one rank writes in RADOS after another has rolled back, or opened the array anew, is taken back as well") {
  const bool opened_anew = GENERATE(false, true);
  CAPTURE(opened_anew);
  storage::rados_location where;
  where.pool = "ooc";
  where.name_space = "ranks-" + std::to_string(::getpid()) + (opened_anew ? "-anew" : "");
  const auto rank = [&] { return storage::make_rados_node(storage::rados_pool::connect(where)); };
  const auto shape = [](std::uint64_t commit, std::uint64_t generation) {
    auto s = std::make_shared<storage::file_shape>(*testing::make_shape(77, {0, 1, 65536}, 9'000'003));
    s->commits = true;
    s->commit = commit;
    s->generation = generation;
    return s;
  };
  const auto write = [](storage::io_service& n, const storage::shape_ptr& s, std::uint64_t at, std::byte value) {
    const testing::bytes b(5'000'000, value);
    REQUIRE_FALSE(testing::write(n, s, 0, request::contiguous(at, b.size()), b.data()));
  };
  const auto first = rank(), second = rank();
  REQUIRE_FALSE(testing::create(*first, shape(0, 1)));
  write(*first, shape(0, 1), 0, std::byte{1});
  write(*second, shape(0, 1), 4'000'003, std::byte{1});
  REQUIRE_FALSE(testing::prepare(*first, shape(0, 1)));
  for (const auto& one : {first, second}) write(*one, shape(1, 1), 0, std::byte{2});
  const auto now = shape(1, opened_anew ? 2 : 1);
  REQUIRE_FALSE(testing::roll_back(*first, now));
  if (!opened_anew) second->forget();
  write(*second, now, 4'000'003, std::byte{3});

  const auto next = rank();
  REQUIRE_FALSE(testing::roll_back(*next, shape(1, 3)));
  testing::bytes seen(9'000'003);
  REQUIRE_FALSE(testing::read(*next, shape(1, 3), 0, request::contiguous(0, seen.size()), seen.data()));
  CHECK(std::count(seen.begin(), seen.end(), std::byte{1}) == std::ssize(seen));
}

TEST_CASE("the bytes of a store may be in an erasure coded pool") {
  const std::string url = url_of("coded");
  const auto bytes = numbers(5'000'000);
  {
    auto s = store::open(url + "?data=ooc-coded");
    auto f = file::create(s, "f");
    f.write(bytes);
    f.write_at(1'000'003, numbers(1000, 9));
    f.sync();
  }
  auto s = store::open(url);  // which knows where they are
  auto f = file::open(s, "f", file_access::read_only);
  std::vector<std::byte> back(bytes.size());
  REQUIRE(f.read_at(0, back) == back.size());
  auto expected = bytes;
  const auto over = numbers(1000, 9);
  std::copy(over.begin(), over.end(), expected.begin() + 1'000'003);
  CHECK(back == expected);
  CHECK(objects_of(url).empty());
}

TEST_CASE("a file whose objects are gone is said to be, by name") {
  const std::string url = url_of("gone");
  auto s = store::open(url);
  {
    auto f = file::create(s, "f");
    f.write(numbers(100));
    f.sync();
  }
  storage::rados_location where;
  where.pool = "ooc";
  where.name_space = url.substr(url.find('/') + 1);
  storage::rados_pool::connect(where)->remove(storage::object_name(s.core()->metadata().lookup("f").id));
  CHECK_THROWS_WITH(file::open(s, "f", file_access::read_write),
                    Catch::Contains("'f'") && Catch::Contains("the object that says what there is of it is missing"));
}

TEST_CASE("what was written after a file had been removed, or past its end, goes with the orphans") {
  const std::string url = url_of("late");
  auto s = store::open(url);
  const auto pool = storage::rados_pool::connect(storage::parse_rados_url(url.substr(url.find(':') + 1)).where);
  std::vector<storage::file_id> ids;
  for (const char* name : {"f", "g"}) {
    file::create(s, name).write(numbers(5'000'000));
    ids.push_back(s.core()->metadata().lookup(name).id);
  }
  const auto remove = [&](const char* name) {
    s.remove(name);
    s.core()->removals().finish();
  };
  remove("f");
  pool->put(storage::object_name(ids[0], 1), "late");
  pool->put(storage::object_name(ids[1], 7), "past the end");
  remove("g");
  const auto verified = [&] { return storage::check_store(*s.core(), "", [](std::uint64_t, std::uint64_t) {}); };
  const auto found = verified();
  CHECK(found.orphans.size() == 2);
  storage::remove_orphans(*s.core(), found.orphans);
  CHECK(verified().problems.empty());
  CHECK(objects_of(url).empty());
}

TEST_CASE("what is written to the file of an array in RADOS while it is packed, or later, is refused, and not lost") {
  const auto when = GENERATE(as<std::string>{}, "while it is packed", "then", "after it was not");
  CAPTURE(when);
  const std::string url = url_of("packed-" + std::to_string(when.size()));
  auto s = store::open(url);
  runtime rt({.memory = 64_MiB});
  constexpr std::size_t n = 3'000'000;
  {
    ooc_array<int, 1> a(rt, s, "a", create, {n});
    for (std::size_t i = 0; i < n; ++i) a[i] = static_cast<int>(i / 100);
  }
  auto f = file::open(s, "a", file_access::read_write);
  const auto seven = std::vector<int>(1000, 7);
  std::error_code refused;
  const auto write = [&] {
    try {
      f.write_at(0, std::as_bytes(std::span(seven)));
    } catch (const error& e) {
      refused = e.code();
    }
  };
  std::thread writer;  // it waits for the end of the packing
  const auto step = [&](std::uint64_t) {
    if (when == "while it is packed" && !writer.joinable()) writer = std::thread(write);
    if (when == "after it was not") throw std::runtime_error("given up");
  };
  try {
    s.pack("a", {.codec = "gzip", .step = step});
  } catch (const std::runtime_error&) {
  }
  if (writer.joinable())
    writer.join();
  else
    write();
  const bool packed = when != "after it was not";
  CHECK(refused == (packed ? std::make_error_code(std::errc::read_only_file_system) : std::error_code()));
  s.core()->removals().finish();
  {
    const ooc_array<int, 1> a(rt, s, "a", open_read_only);
    for (std::size_t i = 0; i < n; ++i)
      if (const int wanted = !packed && i < seven.size() ? 7 : static_cast<int>(i / 100); a[i] != wanted)
        FAIL("element " << i << " is " << a[i]);
  }
  // What went to the objects that it had before.
  const auto verified = [&] { return storage::check_store(*s.core(), "", [](std::uint64_t, std::uint64_t) {}); };
  storage::remove_orphans(*s.core(), verified().orphans);
  CHECK(verified().clean());
}

TEST_CASE("what cannot be in RADOS is refused, and what is not there is said") {
  CHECK_THROWS_WITH(store::open("rados:no-such-pool/x"), Catch::Contains("ceph osd pool create no-such-pool"));
  CHECK_THROWS_WITH(store::open(url_of("none"), {.create = false}), Catch::Contains("`ooc init` makes one"));
  CHECK_THROWS_WITH(store::open("rados:ooc/x?conf=/no/such.conf"), Catch::Contains("'/no/such.conf', cannot be read"));
  const std::string url = url_of("strangers");
  storage::rados_location where;
  where.pool = "ooc";
  where.name_space = url.substr(url.find('/') + 1);
  const auto pool = storage::rados_pool::connect(where);
  pool->put("somebody's", "bytes");
  CHECK_THROWS_WITH(store::open(url),
                    Catch::Contains("other objects ('somebody's')") && Catch::Contains("a namespace of its own"));
  pool->put("oocarray-store", "oocarray store in RADOS 2\n");
  CHECK_THROWS_WITH(store::open(url), Catch::Contains("use a later one"));

  runtime rt({.memory = 16_MiB});
  auto s = store::open(url_of("refused"));
  CHECK_THROWS_WITH((ooc_array<int, 1>(rt, s, "a", create, {10}, {.stripes = {.sf = 128 << 20}})),
                    Catch::Contains("in RADOS they may have 67108864 at most"));
  CHECK_THROWS_WITH((ooc_array<int, 1>(rt, s, "a", create, {std::size_t{1} << 40})), Catch::Contains("No space left"));
}

TEST_CASE("a child of a process that has used RADOS is told that it cannot") {
  const std::string url = url_of("fork");
  auto s = store::open(url);
  testing::temporary_folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said;
    try {
      (void)store::open(url);
    } catch (const error& e) {
      said = e.what();
    }
    ::_exit(said.find("'spawn'") != said.npos ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  s.mkdir("still-there");
}

TEST_CASE("through a metadata server several programs have a store in RADOS") {
  const std::string url = url_of("served");
  testing::temporary_folder folder;
  const std::string ooc = std::getenv("OOC_COMMAND");
  testing::server_process metad(std::getenv("OOC_METAD"), {"--folder", (folder / "metad").string(), "--database", url},
                                folder / "log");
  {
    auto s = store::open(url);
    s.mkdir("x");
    auto f = file::create(s, "x/f");
    f.write(numbers(5'000'000));
    f.close();
    const auto seen = testing::run_command(ooc + " --store '" + url + "' ls -l x", folder / "ls");
    CHECK_THAT(seen.out, Catch::Contains("4.8 MiB") && Catch::Contains("x/f"));
    const auto verified = testing::run_command(ooc + " --store '" + url + "' verify", folder / "verify");
    CHECK(verified.status == 0);
  }
  CHECK(metad.stop() == 0);
  // Nobody has it now.
  CHECK(store::open(url).exists("x/f"));
}

TEST_CASE("a program that its server has forgotten while it held nothing says where it is when it connects again") {
  const std::string url = url_of("forgotten");
  testing::temporary_folder folder;
  testing::server_process metad(std::getenv("OOC_METAD"),
                                {"--folder", (folder / "m").string(), "--database", url, "--grace", "1"},
                                folder / "log");
  const auto pool = storage::rados_pool::connect(storage::parse_rados_url(url.substr(url.find(':') + 1)).where);
  REQUIRE(testing::soon([&] { return !storage::find_rados_server(*pool).empty(); }));
  testing::faulty_proxy network(metad.address());
  pool->put("oocarray-server", network.address() + "\n");
  auto s = store::open(url);
  const auto addresses = [&] {
    std::vector<std::string> names, all;
    pool->for_each_object([&](const std::string& name) {
      if (name.starts_with("oocarray-client.")) names.push_back(name);
      return true;
    });
    for (const std::string& name : names) all.push_back(pool->get(name).value_or(""));
    return all;
  };
  const auto ours = addresses();
  CHECK(ours.size() == 1);
  network.cut_off();
  REQUIRE(testing::soon([&] { return addresses().empty(); }));
  network.restore();
  s.mkdir("x");
  CHECK(addresses() == ours);
}
