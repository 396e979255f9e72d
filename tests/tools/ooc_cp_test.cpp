// ooc cp: between stores, and within one.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/service/store_core.hpp"
#include "support/shell.hpp"

using namespace ooc::testing;
using namespace ooc::literals;

namespace {

/// A shell with a second store, of three nodes.
struct two_stores : shell {
  two_stores() { REQUIRE(run("--store " + other_url() + " init").status == 0); }

  std::string other_url() const {
    return "local:" + (folder / "o0").string() + "," + (folder / "o1").string() + "," + (folder / "o2").string();
  }
  std::string in_other(const std::string& arguments) { return ok("--store " + other_url() + " " + arguments); }
  std::string bytes_in_other(const std::string& path) {
    in_other("export -f --format raw " + path + " bytes");
    return contents(folder / "bytes");
  }
  std::string to_other() const { return "cp --to " + other_url() + " "; }
  std::string from_other() const { return "cp --from " + other_url() + " "; }
  /// Changes bytes, from this one on, of the only file with stripe objects in the store's second folder.
  void damage(std::uint64_t at = 10000) {
    fs::path victim;
    for (const auto& e : fs::recursive_directory_iterator(folder / "n1"))
      if (e.is_regular_file() && e.path().extension() == ".data") victim = e.path();
    REQUIRE_FALSE(victim.empty());
    std::fstream f(victim, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(static_cast<std::streamoff>(at));
    f.write("damaged?", 8);
  }
  ooc::storage::entry entry_in_other(const std::string& path) const {
    return ooc::store::open(other_url(), {.create = false}).core()->metadata().lookup(path);
  }
};

template <int Number>
struct particle {
  std::uint32_t id;
};

/// A damaged array of such particles; what is left of it, with sevens in place of the rest.
template <int Number>
std::string make_damaged_particles(two_stores& sh) {
  std::string bytes = numbered(40'000);
  {
    auto store = sh.store();
    ooc::runtime rt{{.memory = 8_MiB}};
    ooc::ooc_array<particle<Number>, 1> a{rt, store, "a", ooc::create, {10'000}, {.stripes = {.sn = 1, .nn = 1}}};
    for (std::size_t i = 0; i < 10'000; ++i) {
      particle<Number> p{};
      std::memcpy(&p, bytes.data() + 4 * i, 4);
      a[i] = p;
    }
  }
  sh.damage();
  return bytes.replace(8192, 4096, std::string(4096, '\7'));
}

}  // namespace

template <>
struct ooc::element_type<particle<1>> {
  static std::string name() { return "particle-v2"; }
};
template <>
struct ooc::element_type<particle<2>> {
  static std::string name() { return "force"; }
};

TEST_CASE("an array copied to another store and back is the same, attributes and mode too") {
  two_stores sh;
  const std::string data = numbered(301 * 203 * 4);
  write(sh.folder / "a", data);
  sh.ok("import --type f4 --shape 301x203 --tile 64x32 --sf 4096 a a");
  sh.ok("attr set a unit kelvin");
  sh.ok("attr set a 'a b' 'c = d'");
  {
    auto store = sh.store();
    store.core()->metadata().set_mode("a", 0640);
  }
  sh.ok(sh.to_other() + "a b");
  const auto before = sh.store().core()->metadata().lookup("a");
  const auto after = sh.entry_in_other("b");
  CHECK(after.array == before.array);
  CHECK(after.size == before.size);
  CHECK(after.fill == before.fill);
  CHECK(after.attributes == before.attributes);
  CHECK(after.mode == 0640);
  CHECK(after.striping.nn == 3);  // chosen for the new store
  CHECK(sh.bytes_in_other("b") == data);

  sh.ok(sh.from_other() + "--sf 8192 --nn 1 --sn 1 --buffer 10000 b c");
  CHECK(sh.store().core()->metadata().lookup("c").striping == ooc::striping{1, 1, 8192});
  sh.ok("export --format raw c c");
  CHECK(contents(sh.folder / "c") == data);
  CHECK(sh.ok("attr get c") == "a b=c = d\nunit=kelvin\n");
  CHECK(sh.ok("verify --json").find("\"clean\": true") != std::string::npos);
}

TEST_CASE("a sparse file stays sparse, and its fill value shows where nothing was written") {
  two_stores sh;
  const std::vector<std::byte> fill{std::byte{1}, std::byte{2}, std::byte{3}};
  {
    auto f = ooc::file::create(sh.store(), "s", {.size = 64_MiB, .striping = {}, .sparse = true, .fill = fill});
    const std::vector<std::byte> some(100'000, std::byte{7});
    f.write_at(30'000'001, some);
  }
  sh.ok(sh.to_other() + "s s");
  sh.ok("export --format raw s bytes");
  CHECK(sh.bytes_in_other("s") == contents(sh.folder / "bytes"));
  CHECK(sh.entry_in_other("s").fill == fill);
  CHECK(sh.entry_in_other("s").sparse);
  std::uint64_t blocks = 0;  // of 512 bytes
  for (const char* node : {"o0", "o1", "o2"})
    for (const auto& e : fs::recursive_directory_iterator(sh.folder / node)) {
      struct ::stat s {};
      if (e.path().extension() == ".data" && ::stat(e.path().c_str(), &s) == 0)
        blocks += static_cast<std::uint64_t>(s.st_blocks);
    }
  CHECK(blocks * 512 < 4_MiB);
  CHECK(blocks * 512 >= 100'000);
}

TEST_CASE("folders are copied with everything in them, into a folder that is there or under a name") {
  two_stores sh;
  write(sh.folder / "a", "12345678");
  sh.ok("mkdir -p x/y/empty");
  sh.ok("import a x/a --type u1 --shape 8");
  sh.ok("import a x/y/b --type u1 --shape 2x4");
  sh.ok("attr set x/y note deep");
  sh.refused(sh.to_other() + "x x", "-r");
  sh.ok(sh.to_other() + "-r x new");
  CHECK(sh.in_other("ls -r") == "new/\nnew/a\nnew/y/\nnew/y/b\nnew/y/empty/\n");
  CHECK(sh.in_other("attr get new/y note") == "deep\n");
  sh.ok(sh.to_other() + "-r x new");
  CHECK(sh.in_other("ls new/x") == "new/x/a\nnew/x/y/\n");
  CHECK(sh.bytes_in_other("new/x/y/b") == "12345678");
  sh.ok(sh.to_other() + "-r / /");
  CHECK(sh.in_other("ls -r x") == "x/a\nx/y/\nx/y/b\nx/y/empty/\n");
  // Within one store.
  sh.ok("cp x/a x/y");
  CHECK(sh.ok("ls x/y") == "x/y/a\nx/y/b\nx/y/empty/\n");
  sh.ok("cp -r x z");
  CHECK(sh.ok("ls z") == "z/a\nz/y/\n");
  sh.refused("cp -r x x/y", "itself");
  sh.refused("cp -r / x", "itself");
}

TEST_CASE("what the root folder says of its store's nodes goes to no copy") {
  two_stores sh;
  sh.ok("mkdir d");
  sh.ok("drain 1");
  sh.ok("attr set / unit kelvin");
  CHECK(sh.ok("attr get /").find("ooc.drained=1") != std::string::npos);
  sh.ok(sh.to_other() + "-r / all");
  CHECK(sh.in_other("attr get all") == "unit=kelvin\n");
}

TEST_CASE("a copy with -n overwrites nothing, and goes on where another ended") {
  two_stores sh;
  write(sh.folder / "a", "12345678");
  write(sh.folder / "b", "87654321");
  sh.ok("mkdir d");
  for (const char* n : {"a", "b"}) sh.ok(std::string("import ") + n + " d/" + n + " --type u1 --shape 8");
  sh.in_other("mkdir d");
  sh.in_other("import b d/a --type u1 --shape 8");
  sh.ok(sh.to_other() + "-n d/a d/a");
  CHECK(sh.in_other("ls d") == "d/a\n");
  CHECK(sh.bytes_in_other("d/a") == "87654321");
  sh.ok(sh.to_other() + "-r --skip-existing d /");
  CHECK(sh.bytes_in_other("d/a") == "87654321");
  CHECK(sh.bytes_in_other("d/b") == "87654321");
  sh.ok(sh.to_other() + "-r d /");
  CHECK(sh.bytes_in_other("d/a") == "12345678");
  sh.in_other("mkdir e");
  sh.in_other("mkdir e/f");
  sh.ok("import a f --type u1 --shape 8");
  sh.refused(sh.to_other() + "f e", "'e/f'");  // e/f is a folder
  sh.refused(sh.to_other() + "nothing x", "nothing");
  sh.refused(sh.to_other() + "d/a no/such/folder", "no/such");
  sh.refused("cp --to local:/nowhere/at/all d/a x", "/nowhere/at/all");
  sh.refused("cp d/a", "DESTINATION");
}

TEST_CASE("a copy that is killed leaves nothing under any name") {
  two_stores sh;
  ooc::file::create(sh.store(), "big", {.size = std::uint64_t{8} << 30, .striping = {}, .sparse = true});
  const outcome o = sh.run(sh.to_other() + "--buffer 65536 big big", "timeout -s KILL 0.3");
  CHECK(o.status != 0);
  CHECK(sh.in_other("ls").empty());
  CHECK(sh.in_other("verify --json").find("\"files\": 0") != std::string::npos);
}

TEST_CASE("a copy of damaged data is refused and leaves nothing") {
  two_stores sh;
  write(sh.folder / "a", numbered(1'000'000));
  sh.ok("import a a --type u1 --shape 1000000");
  sh.damage();
  sh.refused(sh.to_other() + "a a", "'a'");
  CHECK(sh.in_other("ls").empty());
  CHECK(sh.in_other("verify --json").find("\"clean\": true") != std::string::npos);
}

TEST_CASE("a copy or move of several names what is damaged, goes on with the others and ends with 1") {
  two_stores sh;
  write(sh.folder / "x", numbered(100'000));
  sh.ok("mkdir d d/e");
  sh.ok("import -q x d/bad --type u1 --shape 100000 --nn 1 --sn 1");
  for (const char* good : {"d/a", "d/e/c", "d/z", "z"})
    sh.ok("import -q x " + std::string(good) + " --type u1 --shape 100000 --nn 1 --sn 0");
  sh.damage();
  const auto partly = [&](const std::string& arguments) {
    const outcome o = sh.run(arguments);
    INFO(arguments << ": " << o.err);
    CHECK(o.status == 1);
    CHECK(o.out.empty());
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
    CHECK(o.err.starts_with("ooc: "));
    return o.err;
  };
  CHECK(partly(sh.to_other() + "-q -r / /").find("'d/bad'") != std::string::npos);
  CHECK(sh.in_other("ls -r") == "d/\nd/a\nd/e/\nd/e/c\nd/z\nz\n");
  CHECK(sh.bytes_in_other("d/z") == numbered(100'000));
  sh.in_other("rm -r d z");
  CHECK(partly(sh.to_other() + "-q nothing z /").find("'nothing' does not exist") != std::string::npos);
  CHECK(sh.in_other("ls -r") == "z\n");
  CHECK(partly("mv -q --to " + sh.other_url() + " d d").find("'d/bad'") != std::string::npos);
  CHECK(sh.in_other("ls -r d") == "d/a\nd/e/\nd/e/c\nd/z\n");
  CHECK(sh.ok("ls -r") == "d/\nd/bad\nz\n");
  sh.ok("mkdir f");
  CHECK(partly("mv nothing z f").find("nothing") != std::string::npos);
  CHECK(sh.ok("ls f") == "f/z\n");
}

TEST_CASE("what is written or replaced while it is moved stays") {
  two_stores sh;
  const bool replaced = GENERATE(false, true);
  CAPTURE(replaced);
  write(sh.folder / "x", numbered(1'000'000));
  write(sh.folder / "y", numbered(8));
  sh.ok("import -q x a --type u1 --shape 1000000");
  const fs::path fifo = sh.folder / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const std::string move =
      "cd '" + sh.folder.path().string() + "' && " OOC_COMMAND " --store " + sh.url() + " mv -q a ./fifo 2>said";
  auto moved = std::async(std::launch::async, [&] { return std::system(move.c_str()); });
  {
    std::ifstream out(fifo, std::ios::binary);
    std::string begun(1000, '\0');
    out.read(begun.data(), 1000);  // more than fits into the FIFO is to come
    if (replaced) {
      sh.ok("rm a");
      sh.ok("import -q y a --type u1 --shape 8");
    } else {
      sh.ok("import -q y a --type u1 --shape 8 --at 500000");
    }
    std::string rest(std::istreambuf_iterator<char>(out), {});
    if (!replaced) CHECK(rest.size() == 999'000);
  }
  const int status = moved.get();
  const std::string said = contents(sh.folder / "said");
  INFO(said);
  CHECK(WEXITSTATUS(status) == 1);
  if (!replaced)
    CHECK(said.find("'a' has been written or replaced while it was copied, and stays") != std::string::npos);
  const std::string there = sh.ok("export -q --format raw a -");
  CHECK(there.substr(replaced ? 0 : 500'000, 8) == numbered(8));
}

TEST_CASE("--salvage takes what can be read, fills the rest, and says how much that is and where") {
  two_stores sh;
  std::vector<double> numbers(10'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  std::string data(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 8);
  write(sh.folder / "x", data);
  const bool structs = GENERATE(false, true);
  CAPTURE(structs);
  sh.ok("import -q x a --nn 1 --sn 1 " +
        std::string(structs ? "--type struct32 --shape 5x500" : "--type f8 --shape 10x1000"));
  sh.damage();  // elements 1024 to 1535 of the f8, 256 to 383 of the structures
  const std::string value = structs ? "7" : "nan";
  std::string expected = data;
  if (structs)
    expected.replace(8192, 4096, std::string(4096, '\7'));
  else
    for (std::size_t i = 1024; i < 1536; ++i) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      std::memcpy(expected.data() + i * 8, &nan, 8);
    }
  const auto salvaged = [&](const std::string& arguments, const std::string& said) {
    const outcome o = sh.run(arguments);
    INFO(arguments << ": " << o.err);
    CHECK(o.status == 1);
    CHECK(o.err.find("'a': " + said) != std::string::npos);
    CHECK(o.err.find("checksum") != std::string::npos);
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
  };
  const std::string all = structs ? "128 elements (4096 bytes) cannot be read and are 7 in the copy: 256-383 "
                                  : "512 elements (4096 bytes) cannot be read and are nan in the copy: 1024-1535 ";
  salvaged(sh.to_other() + "-q --salvage " + value + " --buffer 5000 a a", all);
  CHECK((sh.bytes_in_other("a") == expected));
  salvaged("export -q --format raw --salvage " + value + " a whole", all);
  CHECK((contents(sh.folder / "whole") == expected));
  if (structs) return;
  salvaged("export -q --format raw --salvage nan --box 1:2,: a row",
           "512 elements (4096 bytes) cannot be read and are nan in the copy: 24-535 ");
  CHECK((contents(sh.folder / "row") == expected.substr(8000, 8000)));
  sh.refused(sh.to_other() + "--salvage many a b", "'many' is no f8");
}

TEST_CASE("--salvage fills the bytes of elements whose type has a name of its own") {
  two_stores sh;
  const bool is_particle = GENERATE(true, false);  // else a name that begins as that of a float
  const std::string expected = is_particle ? make_damaged_particles<1>(sh) : make_damaged_particles<2>(sh);
  const outcome copied = sh.run(sh.to_other() + "-q --salvage 7 a a");
  INFO(copied.err);
  CHECK(copied.status == 1);
  CHECK(copied.err.find("'a': 1024 elements (4096 bytes) cannot be read and are 7") != std::string::npos);
  CHECK((sh.bytes_in_other("a") == expected));
  CHECK(sh.run("export -q --format raw --salvage 7 a whole").status == 1);
  CHECK((contents(sh.folder / "whole") == expected));
  sh.refused("export -q --format raw --salvage nan a none", "'nan' is no byte (0 to 255)");
}

TEST_CASE("--salvage takes every element of a row in tiles whose chunk is good") {
  two_stores sh;
  std::vector<double> numbers(2000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  write(sh.folder / "x", std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 8));
  sh.ok("import -q x a --nn 1 --sn 1 --type f8 --shape 2x1000 --tile 2x500");
  // Chunks 0 and 2 of 4 KiB.  Columns 10 to 509 of the second row begin and end in them, and are else in chunk 1.
  sh.damage(100);
  sh.damage(9000);
  std::string expected;
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t column = 10; column < 1000; ++column) {
      const std::size_t in_file = column / 500 * 1000 + row * 500 + column % 500, chunk = in_file * 8 / 4096;
      const double element = chunk % 2 == 0 ? -1 : numbers[row * 1000 + column];
      expected.append(reinterpret_cast<const char*>(&element), 8);
    }
  const outcome o = sh.run("export -q --format raw --salvage -1 --box :,10: a part");
  CHECK(o.status == 1);
  CHECK(o.err.find("'a': ") != std::string::npos);
  CHECK((contents(sh.folder / "part") == expected));
}

TEST_CASE("--salvage takes every stripe that is left, also where several have less than a checksum covers", "[local]") {
  two_stores sh;
  write(sh.folder / "x", numbered(100'000));
  sh.in_other("import -q x a --type f4 --shape 25x1000 --sf 1024");
  fs::remove_all(sh.folder / "o1");
  std::string expected = numbered(100'000);
  for (std::size_t at = 0; at < expected.size(); ++at)
    if (at / 1024 % 3 == 1) expected[at] = '\0';
  const std::string from = "'" + sh.other_url() + "?lost=" + (sh.folder / "o1").string() + "' ";
  CHECK(sh.run("cp -q --salvage 0 --from " + from + "a a").status == 1);
  sh.ok("export -q --format raw a copied");
  CHECK((contents(sh.folder / "copied") == expected));
  CHECK(sh.run("export -q --format raw --salvage 0 --store " + from + "a exported").status == 1);
  CHECK((contents(sh.folder / "exported") == expected));
}

TEST_CASE("a local store that has lost a folder is read as far as the others go", "[local]") {
  two_stores sh;
  write(sh.folder / "x", numbered(100'000));
  sh.ok("import -q x first --type u1 --shape 100000 --nn 1 --sn 0");
  sh.ok("import -q x both --type u1 --shape 100000 --sn 0 --sf 4096");
  fs::remove_all(sh.folder / "n1");
  const std::string url = sh.url() + "?lost=" + (sh.folder / "n1").string();
  outcome o = sh.run("ls");
  CHECK(o.err.find("if it is lost, '" + url + "' opens what is left") != std::string::npos);

  const std::string left = "--store '" + url + "' ";
  CHECK(sh.ok("ls " + left) == "both\nfirst\n");
  sh.ok("export -q --format raw " + left + "first back");
  CHECK(contents(sh.folder / "back") == numbered(100'000));
  o = sh.run("export -q --format raw " + left + "both none");
  CHECK(o.status == 1);
  CHECK(o.err.find("both") != std::string::npos);
  CHECK(o.err.find((sh.folder / "n1").string() + "' is given up as lost") != std::string::npos);
  CHECK(sh.run("mkdir d " + left).err.find("open for reading only") != std::string::npos);
  CHECK_FALSE(fs::exists(sh.folder / "n1"));

  o = sh.run("cp -q -r --from '" + url + "' --to " + sh.other_url() + " / /");
  CHECK(o.status == 1);
  CHECK(sh.in_other("ls") == "first\n");
  CHECK(sh.run("cp -q --salvage 0 --from '" + url + "' --to " + sh.other_url() + " both both").status == 1);
  std::string expected = numbered(100'000);
  for (std::size_t at = 0; at < expected.size(); ++at)
    if (at / 4096 % 2 == 1) expected[at] = '\0';
  CHECK((sh.bytes_in_other("both") == expected));

  const auto lost = [&](const std::string& folder) {
    return sh.run("ls --store '" + sh.url() + "?lost=" + folder + "'").err;
  };
  CHECK(lost("/nowhere").find("none of the store's") != std::string::npos);
  CHECK(lost((sh.folder / "n0").string()).find("cannot be done without") != std::string::npos);
  fs::remove(sh.folder / "n0" / "metadata.sqlite");
  o = sh.run("ls " + left);
  CHECK(o.err.find("is not there") != std::string::npos);
}

TEST_CASE("a limit on file sizes (ulimit -f) fails a copy, in a store and out of it, and says so") {
  shell sh;
  write(sh.folder / "plain", numbered(4 << 20));
  const std::string limited = "sh -c 'ulimit -f 1024; exec \"$@\"' sh";  // 512 KiB or 1 MiB, as the shell counts
  sh.refused("cp -q file:plain a", "(ulimit -f)", limited);
  sh.ok("cp -q file:plain a");
  const outcome o = sh.run("cp -q a file:copy", limited);
  INFO(o.err);
  CHECK(o.status == 1);
  CHECK(o.err.find("File too large") != std::string::npos);
}
