// A library that was built without the client of servers.
#include <catch2/catch.hpp>
#include <string>

#include "oocarray/error.hpp"
#include "oocarray/store.hpp"

using namespace ooc;

TEST_CASE("without the client of servers their URLs are refused with a remedy") {
  try {
    store::open("ooc://head");
    FAIL("was opened");
  } catch (const usage_error& e) {
    CHECK(e.code() == errc::not_a_store);
    const std::string said = e.what();
    CHECK(said.find("ooc://head") != std::string::npos);
    CHECK(said.find("OOCARRAY_BUILD_REMOTE=ON") != std::string::npos);
  }
}
