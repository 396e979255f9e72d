#include "progress/progress.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <string>

using ooc::progress;

namespace {

struct captured {
  captured() : file(std::tmpfile()) {}
  ~captured() { std::fclose(file); }
  std::string text() const {
    std::fflush(file);
    std::rewind(file);
    std::string s(10000, '\0');
    s.resize(std::fread(s.data(), 1, s.size(), file));
    return s;
  }
  std::FILE* file;
};

}  // namespace

TEST_CASE("sizes and times read as people write them") {
  CHECK(ooc::human_bytes(0) == "0 B");
  CHECK(ooc::human_bytes(1023) == "1023 B");
  CHECK(ooc::human_bytes(1536) == "1.5 KiB");
  CHECK(ooc::human_bytes(200.0 * 1024 * 1024) == "200 MiB");
  CHECK(ooc::human_bytes(0x1p63) == "8.0 EiB");
  CHECK(ooc::human_seconds(7) == "0:07");
  CHECK(ooc::human_seconds(3723) == "1:02:03");
  CHECK(ooc::human_seconds(1e300) == "100000:00:00");
}

TEST_CASE("short work prints nothing in a log file") {
  captured out;
  progress bar("import", 100, progress::unit::bytes, out.file);
  bar.advance(100);
  bar.finish();
  CHECK(out.text().empty());
}

TEST_CASE("long work prints a line every five seconds with rate and time left") {
  captured out;
  progress::clock::time_point now{};
  progress bar("import", 4096 * 100, progress::unit::bytes, out.file, [&] { return now; });
  for (int i = 0; i < 56; ++i) {
    now += std::chrono::milliseconds(100);
    bar.advance(4096);
  }
  const std::string text = out.text();
  INFO(text);
  CHECK(text.starts_with("import "));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(text.find(" 50 %  200 KiB of 400 KiB  40.0 KiB/s  0:05 left") != std::string::npos);
  CHECK(text.find('\r') == std::string::npos);
  bar.finish();
  CHECK(out.text().find("took 0:06") != std::string::npos);
}
