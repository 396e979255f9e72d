// Tests of what a client may say of a file: the capability is signed for its geometry.
#include <catch2/catch.hpp>

#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/raw_connection.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t size = 300000;
constexpr std::uint64_t huge = std::uint64_t{1} << 62;

struct served_file {
  served_file() { REQUIRE_FALSE(create(*node, shape)); }

  /// The file as somebody describes it who holds its capability.
  template <class Change>
  shape_ptr but(Change change) const {
    auto other = std::make_shared<file_shape>(*shape);
    change(*other);
    return other;
  }

  test_signer signer;
  temporary_folder folder;
  running_iod iod{signer, folder.path()};
  std::shared_ptr<io_service> node{open_remote_node(client_options(iod.addresses(), 3s))};
  shape_ptr shape{granted(signer, 1, size)};
};

}  // namespace

TEST_CASE("a verification of a file of a stated size looks at no more than the file has") {
  served_file s;
  const auto [failed, report] = verify(*s.node, s.but([](file_shape& f) { f.size = huge; }));
  INFO(failed.what);
  CHECK_FALSE(failed);
  CHECK(report.corrupt == 0);
  const auto [refused, nothing] = verify(*s.node, s.but([](file_shape& f) {
    f.striping = {0, 1, std::uint64_t{1} << 40};
  }));
  CHECK(refused.code == std::errc::permission_denied);
}

TEST_CASE("a writer can make no stripe object larger than the capability says") {
  served_file s;
  const bytes data = pattern(4096);
  const auto larger = s.but([](file_shape& f) { f.size = huge; });
  const failure beyond = write(*s.node, larger, 0, request::contiguous(std::uint64_t{1} << 43, 4096), data.data());
  CHECK(beyond.code == errc::invalid_request);
  CHECK_THAT(beyond.what, Catch::Contains("the file at byte 300000"));
  CHECK(resize(*s.node, larger, 0, size).code == std::errc::permission_denied);
  CHECK(fs::file_size(node_folder(s.folder.path()).data(1)) <= size + 4096);
}

TEST_CASE("who may read a file, or write it, may wait until it is durable, and nobody else") {
  served_file s;
  const auto synced = [&](std::uint32_t rights) {
    return sync(*s.node, s.but([&](file_shape& f) { f.capability = s.signer.capability(f, rights); }));
  };
  CHECK_FALSE(synced(wire::right_read));
  CHECK_FALSE(synced(wire::right_write));
  CHECK(synced(wire::right_make).code == std::errc::permission_denied);
}

TEST_CASE("a fill value, a striping and a kind of space that were not signed are refused") {
  served_file s;
  bytes back(size);
  const auto reading = [&](const shape_ptr& f) {
    return read(*s.node, f, 0, request::contiguous(0, 4096), back.data());
  };
  CHECK_FALSE(reading(s.shape));
  for (const shape_ptr& other :
       {s.but([](file_shape& f) { f.fill.assign(1, std::byte{7}); }), s.but([](file_shape& f) { f.sparse = true; }),
        s.but([](file_shape& f) { f.striping.nn = 2; }), s.but([](file_shape& f) { f.striping.sf = 512; })}) {
    const failure f = reading(other);
    CHECK(f.code == std::errc::permission_denied);
    CHECK_THAT(f.what, Catch::Contains("open the file again"));
  }
}

TEST_CASE("a client that opened a file before it shrank reads on what there is") {
  served_file s;
  const auto now = granted(s.signer, 1, size / 2);
  REQUIRE_FALSE(resize(*s.node, s.but([](file_shape& f) { f.size = size / 2; }), 0, size));
  // Its capability was renewed since, its idea of the file was not.
  const auto stale = s.but([&](file_shape& f) { f.capability = now->capability; });
  bytes back(size);
  CHECK_FALSE(read(*s.node, stale, 0, request::contiguous(0, size / 2), back.data()));
  CHECK(read(*s.node, stale, 0, request::contiguous(0, size), back.data()).code == errc::invalid_request);
}
