// ooc picture: the picture of an array, and what it reads for it.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "oocarray/ooc_array.hpp"
#include "support/shell.hpp"

using namespace ooc::testing;
using namespace ooc::literals;

namespace {

/// Width and height of a PNG; its first two numbers after the signature and the name of the chunk.
std::pair<std::uint32_t, std::uint32_t> size_of_png(const std::string& png) {
  REQUIRE(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  REQUIRE(png.substr(12, 4) == "IHDR");
  const auto number = [&](std::size_t at) {
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < 4; ++i) n = n << 8 | static_cast<unsigned char>(png[at + i]);
    return n;
  };
  return {number(16), number(20)};
}

struct particle {
  std::uint32_t id;
};

}  // namespace

template <>
struct ooc::element_type<particle> {
  static std::string name() { return "particle-v2"; }
};

#if defined(__x86_64__)
TEST_CASE("a picture shows the values of long doubles, and the absolute ones of complex ones") {
  shell sh;
  const long double real[] = {0.25L, 7, 3}, complex[] = {3, 4, 0, 1};
  write(sh.folder / "r", std::string(reinterpret_cast<const char*>(real), sizeof real));
  write(sh.folder / "c", std::string(reinterpret_cast<const char*>(complex), sizeof complex));
  sh.ok("import --type f16 --shape 3 r r");
  sh.ok("import --type c32 --shape 2 c c");
  CHECK(sh.ok("picture r r.png").ends_with("from 0.25 (dark) to 7 (light)\n"));
  CHECK(sh.ok("picture c c.png").ends_with("from 1 (dark) to 5 (light)\n"));
}
#endif

TEST_CASE("a picture of a type with a name of its own is refused") {
  shell sh;
  {
    auto store = sh.store();
    ooc::runtime rt{{.memory = 8_MiB}};
    ooc::ooc_array<particle, 1> a{rt, store, "a", ooc::create, {100}};
  }
  sh.refused("picture a new.png", "no numbers");
}

TEST_CASE("a picture shows every k-th element, and slices of any dimensions") {
  shell sh;
  std::vector<double> data(40 * 30 * 50);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<double>(i);
  data[7] = std::numeric_limits<double>::quiet_NaN();
  write(sh.folder / "a", std::string(reinterpret_cast<const char*>(data.data()), data.size() * 8));
  sh.ok("import --type f8 --shape 40x30x50 a a");
  sh.ok("import --type f8 --shape 40x30x50 --tile 7x8x9 a t");
  const auto picture = [&](const std::string& arguments) {
    const std::string said = sh.ok("picture -f " + arguments + " out.png");
    const auto [width, height] = size_of_png(contents(sh.folder / "out.png"));
    return std::to_string(width) + "x" + std::to_string(height) + " " + said;
  };
  CHECK(picture("a") == "50x30 a[20,0:30,0:50]: 30 x 50 of 30 x 50 elements, from 30000 (dark) to 31499 (light)\n");
  CHECK(picture("a --slice 0,:,:").ends_with("from 0 (dark) to 1499 (light)\n"));  // NaN is in none
  CHECK(picture("a --slice :,3,5:45 --size 10") ==
        "10x10 a[0:40,3,5:45]: 10 x 10 of 40 x 40 elements, from 155 (dark) to 54191 (light)\n");
  CHECK(picture("a --slice 1,2,:") ==
        "50x32 a[1,2,0:50]: 1 x 50 of 1 x 50 elements, from 1600 (dark) to 1649 (light)\n");
  CHECK(picture("a --slice 1,:,2 --range 0:1.5").ends_with("from 0 (dark) to 1.5 (light)\n"));
  for (const char* s : {"0,:,:", "39,1:29,:", ":,:,49", ":,29,0:50 --size 7", "0:40,7,7"}) {
    sh.ok("picture -f a one.png --slice " + std::string(s));
    sh.ok("picture -f t two.png --slice " + std::string(s));
    CHECK(contents(sh.folder / "one.png") == contents(sh.folder / "two.png"));
  }
  const outcome piped = sh.run("picture a -");
  CHECK(size_of_png(piped.out).first == 50);
  CHECK(piped.err.starts_with("a[20,"));

  sh.refused("picture a one.png", "--force");
  for (const char* s : {"5", "40,:,:", ":,:,:", "1,2,3", "1,:,x", "5:5,:,1"})
    sh.refused("picture a new.png --slice " + std::string(s), "--slice");
  for (const char* range : {"1:1", "1:nan", "0:inf", "-inf:1", "0:1e999"})
    sh.refused("picture a new.png --range " + std::string(range), "--range");
  sh.refused("picture a new.png --size 0", "--size");
  sh.refused("picture nothing new.png", "'nothing'");
  sh.refused("picture a no/such.png", "no/such.png");
  sh.ok("cp ./a plain");
  sh.refused("picture plain new.png", "ooc import");
  sh.ok("import --type struct24 --shape 20000 a s");
  sh.refused("picture s new.png", "no numbers");
  CHECK_FALSE(fs::exists(sh.folder / "new.png"));
}

TEST_CASE("a picture of an array of any size reads what it shows") {
  shell sh;
  {
    auto store = sh.store();
    ooc::runtime rt{{.memory = 8_MiB}};
    ooc::ooc_array<float, 2> a{
        rt, store, "a", ooc::create, {1 << 20, 1 << 18}, {.fill = 2.0f, .sparse = true}};  // 1 TiB
    a[0][0] = 7;
    a.writeback();
  }
  CHECK(sh.ok("picture a a.png --size 64") ==
        "a[0:1048576,0:262144]: 64 x 64 of 1048576 x 262144 elements, from 2 (dark) to 7 (light)\n");
}
