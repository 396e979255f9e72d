#include "oocarray/stats.hpp"

#include <catch2/catch.hpp>

#include "oocarray/error.hpp"

TEST_CASE("counters add and subtract one by one") {
  ooc::io_stats a;
  a.read_requests = 3;
  a.device_bytes_written = 10;
  a.syncs = 2;
  ooc::io_stats b = a;
  b += a;
  CHECK(b.read_requests == 6);
  CHECK(b.device_bytes_written == 20);
  CHECK((b - a).syncs == 2);
  CHECK((b - a).write_regions == 0);
}

TEST_CASE("a failure becomes the exception that fits, with its cause said once") {
  CHECK_NOTHROW(ooc::throw_if({}));
  CHECK_THROWS_AS(ooc::throw_if({ooc::errc::invalid_request, "x"}), ooc::usage_error);
  CHECK_THROWS_AS(ooc::throw_if({ooc::errc::torn, "x"}), ooc::integrity_error);
  const std::error_code full = std::make_error_code(std::errc::no_space_on_device);
  try {
    ooc::throw_if({full, "node /d: write failed: " + full.message()});
    FAIL("nothing was thrown");
  } catch (const ooc::io_error& e) {
    CHECK(e.code() == full);
    CHECK(std::string(e.what()) == "node /d: write failed: " + full.message());
  }
}
