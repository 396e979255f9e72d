// The text of an exception: whole sentences as they are, and what the system says of a failure once.
#include "oocarray/error.hpp"

#include <catch2/catch.hpp>

using namespace ooc;

TEST_CASE("a refusal is a whole sentence, behind which nothing is added") {
  const std::error_code denied = std::make_error_code(std::errc::permission_denied);
  const usage_error first(denied, "'/a': user 7 may not write");
  const usage_error again(first.code(), std::string("server m: ") + first.what());
  CHECK(std::string(again.what()) == "server m: '/a': user 7 may not write");
  CHECK(again.code() == denied);
  CHECK(std::string(usage_error(errc::closed, "array 'a' has been closed").what()) == "array 'a' has been closed");
  CHECK(std::string(integrity_error(errc::corrupt, "'a' is damaged").what()) == "'a' is damaged");
}

TEST_CASE("a failure whose text ends with its cause is thrown with that cause once") {
  const std::error_code full = std::make_error_code(std::errc::no_space_on_device);
  try {
    throw_if({full, "node 3: " + full.message()});
    FAIL("nothing was thrown");
  } catch (const io_error& e) {
    CHECK(std::string(e.what()) == "node 3: " + full.message());
    CHECK(std::string(io_error(e).what()) == e.what());
  }
}

TEST_CASE("what the system says of a failure is told where its text does not tell it yet") {
  const std::error_code full = std::make_error_code(std::errc::no_space_on_device);
  CHECK(std::string(io_error(full, "'a' cannot be written").what()) == "'a' cannot be written: " + full.message());
  CHECK(std::string(io_error::in_full(full, "'a' has no room; make some").what()) == "'a' has no room; make some");
}
