// The capabilities that a client holds: answers that overtake each other.
#include "storage/client/capability_renewal.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "support/soon.hpp"

using namespace ooc::storage;
using namespace ooc::testing;
using namespace std::chrono_literals;

namespace {

granted_capability granted(std::string bytes, std::uint64_t size, std::chrono::seconds life = 3600s) {
  return {std::move(bytes), life, size};
}

}  // namespace

TEST_CASE("a capability for less of a file, granted before it grew, does not replace one for more") {
  capability_renewal held([](file_id, std::uint32_t) { return granted("renewed", 100); });
  const capability_ptr c = held.keep(7, 1, granted("grown", 200));
  CHECK(held.keep(7, 1, granted("late", 100)) == c);
  CHECK(c->bytes() == "grown");
  CHECK(held.keep(7, 1, granted("grown again", 300)) == c);
  CHECK(c->bytes() == "grown again");
}

TEST_CASE("a capability that came while another was asked for stays where it is good for more") {
  std::function<void()> meanwhile = [] {};
  capability_renewal held([&](file_id, std::uint32_t) {
    meanwhile();
    return granted("renewed", 200);
  });
  const capability_ptr c = held.keep(7, 1, granted("first", 100));
  meanwhile = [&] { held.keep(7, 1, granted("grown", 300)); };
  CHECK(held.in_use(7, 1, 150) == c);
  CHECK(c->bytes() == "grown");
}

TEST_CASE("a capability renewed after a cut is for less of the file, and replaces the one that expires") {
  capability_renewal held([](file_id, std::uint32_t) { return granted("after the cut", 50); });
  const capability_ptr c = held.keep(7, 1, granted("first", 100, 0s));
  CHECK(soon([&] { return c->bytes() == "after the cut"; }));
}
