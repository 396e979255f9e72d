// URLs of stores on servers that name no address.
#include <catch2/catch.hpp>
#include <string>

#include "oocarray/error.hpp"
#include "oocarray/store.hpp"

using namespace ooc;

TEST_CASE("URLs of servers that name no address are refused with a remedy") {
  const auto check_refused = [](const std::string& url, const std::string& named) {
    INFO(url);
    try {
      store::open(url);
      FAIL("was opened");
    } catch (const usage_error& e) {
      CHECK(e.code() == errc::not_a_store);
      CHECK(std::string(e.what()).find(named) != std::string::npos);
    }
  };
  check_refused("ooc:head", "ooc://HOST");
  check_refused("ooc://head/a", "ooc://HOST");
  check_refused("ooc://:0:1", "ooc:");
}
