#include "iod/capability_check.hpp"

#include <catch2/catch.hpp>
#include <cerrno>

#include "support/iod_fixture.hpp"
#include "support/random_seed.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using wire::right_make;
using wire::right_read;
using wire::right_remove;
using wire::right_resize;
using wire::right_write;

namespace {

struct checked {
  checked() { check.set_store(test_uuid, signer.public_key()); }

  shape_ptr file(std::uint64_t size) const { return make_shape(7, {0, 2, 4096}, size); }
  std::string capability(std::uint32_t rights, std::int64_t lifetime = 3600) const {
    return signer.capability(*file(100'000), rights, lifetime)->bytes();
  }
  /// The errno with which it is refused, 0 where it is not.
  int refused(const std::string& c, shape_ptr f, std::uint32_t rights) {
    return check.check(c, f, rights, me).code.value();
  }

  test_signer signer;
  iod::connected_user me{.uid = ::geteuid(), .holder = wire::mark_of({})};  // connected in 1970
  iod::capability_check check;
};

}  // namespace

TEST_CASE("a capability grants the rights that it was signed with, each by itself") {
  checked c;
  const shape_ptr f = c.file(100'000);
  for (const std::uint32_t given : {right_read, right_write, right_make, right_remove, right_resize})
    for (const std::uint32_t asked : {right_read, right_write, right_make, right_remove, right_resize}) {
      CAPTURE(given, asked);
      CHECK(c.refused(c.capability(given), f, asked) == (given == asked ? 0 : EACCES));
    }
  const std::string both = c.capability(right_read | right_write);
  CHECK(c.refused(both, f, right_read | right_write) == 0);
  CHECK(c.refused(both, f, right_read | right_make) == EACCES);
}

TEST_CASE("a server without a store asks for patience, a request without a capability is refused") {
  iod::capability_check check;
  checked c;
  shape_ptr f = c.file(1);
  CHECK(check.check(c.capability(right_read), f, right_read, c.me).code.value() == EAGAIN);
  CHECK(c.refused("", f, right_read) == EACCES);
}

TEST_CASE("another file, striping, fill value or kind of space than was signed is refused") {
  checked c;
  const std::string given = c.capability(31);
  CHECK(c.refused(given, make_shape(8, {0, 2, 4096}, 100'000), right_read) == EACCES);
  CHECK(c.refused(given, make_shape(7, {0, 2, 8192}, 100'000), right_read) == EACCES);
  CHECK(c.refused(given, make_shape(7, {0, 2, 4096}, 100'000, true), right_read) == EACCES);
  CHECK(c.refused(given, make_shape(7, {0, 2, 4096}, 100'000, false, {std::byte{1}}), right_read) == EACCES);
  CHECK(c.refused(given, make_shape(7, {0, 2, 8192}, 5), right_remove) == 0);  // it needs none of it
}

TEST_CASE("a file has no more bytes for a request than were signed") {
  checked c;
  const std::string given = c.capability(right_write | right_resize);
  shape_ptr f = c.file(200'000);  // it has shrunk since the client opened it
  CHECK_FALSE(c.check.check(given, f, right_write, c.me));
  CHECK(f->size == 100'000);
  CHECK(c.refused(given, c.file(200'000), right_resize) == EACCES);
  CHECK(c.refused(given, c.file(50'000), right_resize) == 0);
}

TEST_CASE("a commit that has more bytes than were signed is no longer there") {
  checked c;
  auto f = std::make_shared<storage::file_shape>(*c.file(200'000));
  f->commits = f->at_commit = true;
  shape_ptr shape = f;
  CHECK(c.check.check(c.capability(right_read), shape, right_read, c.me).code == errc::conflict);
  CHECK(shape->size == 200'000);
}

TEST_CASE("what was good when it came outlives its expiry only while it cannot be renewed") {
  checked c;
  const shape_ptr f = c.file(100'000);
  const std::string late = c.capability(right_read, -1);
  CHECK(c.refused(late, f, right_read) == EKEYEXPIRED);  // it never was good here
  std::int64_t end = 0;
  std::string brief;
  for (std::int64_t life = 1; end == 0 && life < 60; life *= 2) {  // longer on a machine that stood still
    brief = c.capability(right_read, life);
    const std::int64_t latest = wire::seconds_now() + life;
    if (c.refused(brief, f, right_read) == 0) end = latest;
  }
  REQUIRE(end != 0);
  REQUIRE(soon([&] { return wire::seconds_now() >= end; }));
  CHECK(c.refused(brief, f, right_read) == 0);
  c.check.set_metadata_reachable(true);
  CHECK(c.refused(brief, f, right_read) == EKEYEXPIRED);
  c.check.set_metadata_reachable(false);
  CHECK(c.refused(brief, f, right_read) == 0);
  c.me.since = wire::seconds_now();
  CHECK(c.refused(brief, f, right_read) == EKEYEXPIRED);  // the connection is younger
}

TEST_CASE("a capability is for the user and the key that it was made for") {
  checked c;
  const shape_ptr f = c.file(100'000);
  const std::string given = c.capability(right_read);
  CHECK(c.refused(given, f, right_read) == 0);
  const iod::connected_user mine = c.me;
  c.me.uid += 1;
  CHECK(c.refused(given, f, right_read) == EACCES);
  c.me = mine;
  c.me.holder = wire::mark_of("another key");
  CHECK(c.refused(given, f, right_read) == EACCES);
}

TEST_CASE("what was good for one store is good for no other") {
  checked c;
  const shape_ptr f = c.file(100'000);
  const std::string given = c.capability(right_read);
  CHECK(c.refused(given, f, right_read) == 0);
  c.check.set_store("another", c.signer.public_key());
  CHECK(c.refused(given, f, right_read) == ESTALE);
  const test_signer stranger;
  c.check.set_store(test_uuid, stranger.public_key());
  CHECK(c.refused(given, f, right_read) == EACCES);
}

TEST_CASE("of many capabilities each is checked by itself, and one with a changed bit never passes") {
  checked c;
  std::mt19937_64 random(random_seed("capability check"));
  const shape_ptr f = c.file(100'000);
  const std::string given = c.capability(right_read);
  for (int i = 0; i < 200; ++i) {
    std::string forged = given;
    forged[between(random, 0, forged.size() - 1)] ^= static_cast<char>(1 << between(random, 0, 7));
    CHECK(c.refused(forged, f, right_read) != 0);
  }
  for (int i = 0; i < 100; ++i) CHECK(c.refused(c.capability(right_read), f, right_read) == 0);
  CHECK(c.refused(given, f, right_read) == 0);
}
