// The URLs of stores in RADOS, and what is said of those that cannot be opened.
#include <catch2/catch.hpp>

#include "oocarray/error.hpp"
#include "storage/rados/file_object.hpp"
#include "storage/rados/file_snapshots.hpp"
#include "storage/rados/rados_node.hpp"
#include "storage/rados/rados_url.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace std::chrono_literals;

TEST_CASE("a URL of RADOS names a pool, perhaps a namespace, and how to reach them") {
  CHECK(parse_rados_url("data").where.pool == "data");
  CHECK(parse_rados_url("data").where.name_space.empty());
  const auto all = parse_rados_url("data/mine?conf=/etc/ceph/b.conf&user=me&data=coded&deadline=5s");
  CHECK(all.where.pool == "data");
  CHECK(all.where.name_space == "mine");
  CHECK(all.where.conf == "/etc/ceph/b.conf");
  CHECK(all.where.user == "me");
  CHECK(all.data == "coded");
  CHECK(all.where.deadline == 5s);
  CHECK(all.where.name() == "rados:data/mine");
}

TEST_CASE("a URL of RADOS that cannot be read is refused, with what can be written") {
  for (const char* url : {"", "/n", "p/", "p/a/b", "p:a", "//x"})
    CHECK_THROWS_WITH(parse_rados_url(url), Catch::Contains("write rados:POOL or rados:POOL/NAMESPACE"));
  CHECK_THROWS_WITH(parse_rados_url("p?key=1"), Catch::Contains("option 'key=1' is unknown; write ?conf=FILE"));
  CHECK_THROWS_WITH(parse_rados_url("p?user="), Catch::Contains("option 'user=' is unknown"));
  CHECK_THROWS_WITH(parse_rados_url("p?deadline=soon"), Catch::Contains("deadline"));
}

TEST_CASE("objects of a file are named by its id and their numbers") {
  CHECK(object_name(0x12) == "0000000000000012");
  CHECK(object_name(0x12, 10) == "0000000000000012.000000000000000a");
  CHECK(file_of("0000000000000012") == 0x12);
  CHECK(file_of("0000000000000012.000000000000000a") == 0x12);
  for (const char* other : {"", "oocarray-store", "metadata.sqlite.0000000000000000", "000000000000001g"})
    CHECK(file_of(other) == 0);
}

TEST_CASE("objects have whole stripes, and 4 MiB or the next multiple of a stripe above") {
  CHECK(object_bytes(256 << 10) == 4 << 20);
  CHECK(object_bytes(4 << 20) == 4 << 20);
  CHECK(object_bytes(5 << 20) == 5 << 20);
  CHECK(object_bytes(3 << 20) == 6 << 20);
}

TEST_CASE("what is kept of a file is read as it was written, and anything else is refused") {
  file_object f;
  CHECK(parse(text_of({12345, 4 << 20, 2, {}}), f));
  CHECK(f.size == 12345);
  CHECK(f.object == 4 << 20);
  CHECK(f.cuts == 2);
  CHECK_FALSE(f.commits);
  const commit_snapshots c{7, 12, 15, true};
  CHECK(parse(text_of({12345, 4 << 20, 0, c}), f));
  CHECK(f.commits == c);
  CHECK(snapshot_of(f, 7) == 12);
  CHECK(snapshot_of(f, 8) == 15);
  CHECK(snapshot_of(f, 9) == 0);
  CHECK(snapshot_of(f, 6) == 0);
  CHECK_FALSE(parse(text_of({12345, 4 << 20, 0, c}) + "x", f));
  for (const char* text :
       {"", "oocarray file 1\nsize 1\nobject 0\ncuts 1\n", "oocarray file 2\nsize 1\nobject 1\ncuts 1\n",
        "oocarray file 1\nsize 1\nobject 1\ncuts 1", "oocarray file 1\nsize 1\nobject 1\ncuts 1\n\n"})
    CHECK_FALSE(parse(text, f));
}
