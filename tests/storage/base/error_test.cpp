// The text of an exception names its cause once, however often it was passed on.
#include "oocarray/error.hpp"

#include <catch2/catch.hpp>

using namespace ooc;

TEST_CASE("an exception that is thrown again with the text of another names the cause once") {
  const std::error_code denied = std::make_error_code(std::errc::permission_denied);
  const usage_error first(denied, "'/a': user 7 may not write");
  const usage_error again(first.code(), std::string("server m: ") + first.what());
  CHECK(std::string(again.what()) == "server m: '/a': user 7 may not write: " + denied.message());
}

TEST_CASE("a failure whose text ends with its cause is thrown with that cause once") {
  const std::error_code full = std::make_error_code(std::errc::no_space_on_device);
  try {
    throw_if({full, "node 3: " + full.message()});
    FAIL("nothing was thrown");
  } catch (const io_error& e) {
    CHECK(std::string(e.what()) == "node 3: " + full.message());
  }
}
