// Hints on standard error about arrays that are read far more than they are touched.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;
using Catch::Contains;

namespace {

constexpr std::size_t in_wide_block = 2_MiB / sizeof(double);
constexpr std::size_t wide_blocks = 24;

/// Standard error goes to a file for the length of its life.
class caught_stderr {
 public:
  explicit caught_stderr(const std::filesystem::path& file) : file_(file), before_(::dup(2)) {
    std::FILE* f = std::fopen(file.c_str(), "w");
    REQUIRE(f != nullptr);
    ::dup2(::fileno(f), 2);
    std::fclose(f);
  }
  ~caught_stderr() {
    ::dup2(before_, 2);
    ::close(before_);
  }
  std::string text() const {
    std::stringstream s;
    s << std::ifstream(file_).rdbuf();
    return s.str();
  }

 private:
  std::filesystem::path file_;
  int before_;
};

struct setting {
  temporary_folder folder;
  test_store nodes{store_kind::local};
  runtime rt;
  ooc_array<double, 1> a;

  explicit setting(bool hints)
      : rt{options(hints, nodes)},
        a{rt,
          nodes.handle(),
          "wide/a",
          create,
          {wide_blocks * in_wide_block},
          {.block = 2_MiB, .sparse = true, .replace = true}} {}
  static runtime_options options(bool hints, const test_store& nodes) {
    runtime_options o = memory(nodes.staging() + 16_MiB, 1);
    o.hints = hints;
    o.grains = false;  // with which little would be read
    return o;
  }
  /// Touches one element of every block, so often.
  void touch(int times) {
    for (int n = 0; n < times; ++n)
      for (std::size_t b = 0; b < wide_blocks; ++b)
        static_cast<void>(*const_cast<const volatile double*>(a.data() + b * in_wide_block));
  }
};

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take time to touch
TEST_CASE("an array of whose blocks little is touched is named on standard error, once") {
  setting s(true);
  std::string text;
  {
    const caught_stderr err(s.folder / "stderr");
    // A machine that is busy gives the program time that it has not had: then again.
    for (int n = 0; n < 40 && text.empty(); ++n) {
      s.touch(12);
      text = err.text();
    }
    s.touch(12);
    text = err.text();
  }
  CHECK_THAT(text, Contains("array 'wide/a' is read far more than it is touched") && Contains("gather()") &&
                       Contains("hints = false"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

#endif

TEST_CASE("nothing is said where hints are off") {
  setting s(false);
  const caught_stderr err(s.folder / "stderr");
  s.touch(24);
  CHECK(err.text().empty());
}

TEST_CASE("nothing is said of a sweep") {
  setting s(true);
  const caught_stderr err(s.folder / "stderr");
  for (int n = 0; n < 12; ++n) {
    double sum = 0;
    for (const double v : std::as_const(s.a).span()) sum += v;
    CHECK(sum == 0);
  }
  CHECK(err.text().empty());
}
