// Requests of very many regions: what an I/O server takes of a client, and how one stays below.
#include <catch2/catch.hpp>

#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/pauses.hpp"
#include "support/raw_connection.hpp"
#include "support/resident_bytes.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

/// `count` regions of `run` bytes, `step` bytes apart in the file and packed in memory.
request comb(std::uint64_t count, std::uint64_t run, std::uint64_t step) {
  request r;
  r.add({.run = run, .depth = 1, .levels = {{{count, step, run}}}});
  return r;
}

struct sparse_file {
  explicit sparse_file(std::uint64_t size)
      : server(signer, folder.path()),
        node(open_remote_node(client_options(server.addresses()))),
        shape(granted(signer, 1, size, {0, 1, 65536}, true)) {
    REQUIRE_FALSE(create(*node, shape));
  }

  /// For frames that the test writes itself.
  file_descriptor connection() const { return welcomed(server.addresses()[0], wire::server_role::io, test_uuid); }
  /// Reads `r` so many times at once, with the ids from 1 on.
  void ask(const file_descriptor& fd, std::uint64_t times, const request& r) const {
    for (std::uint64_t id = 1; id <= times; ++id) REQUIRE(send_all(fd, read_frame(id, shape, r)));
  }

  test_signer signer;
  temporary_folder folder;
  running_iod server;
  std::shared_ptr<io_service> node;
  shape_ptr shape;
};

}  // namespace

TEST_CASE("a read of more regions than a server lists is refused, and says what to do") {
  const sparse_file f(200'000'000);
  const file_descriptor fd = f.connection();
  const std::uint64_t before = resident_bytes();
  REQUIRE(send_all(fd, read_frame(1, f.shape, comb(100'000'000, 1, 2))));
  received_frame answer;
  REQUIRE(receive(fd, answer));
  REQUIRE(answer.header.has(wire::frame_header::failed));
  const failure refused = wire::decode_failure(answer.body);
  CHECK(refused.code == errc::invalid_request);
  CHECK_THAT(refused.what, Catch::Contains("262144 regions") && Catch::Contains("in several"));
  CHECK(resident_bytes() < before + (100 << 20));
}

TEST_CASE("a client's request of more regions than a server lists goes in several messages") {
  constexpr std::uint64_t regions = 2'500'000, step = 12;
  const sparse_file f(regions * step);
  const bytes out = pattern(regions * 4);
  bytes in(out.size());
  const failure written = write(*f.node, f.shape, 0, comb(regions, 4, step), out.data());
  INFO(written.what);
  REQUIRE_FALSE(written);
  const failure read_back = read(*f.node, f.shape, 0, comb(regions, 4, step), in.data());
  INFO(read_back.what);
  REQUIRE_FALSE(read_back);
  CHECK(in == out);
  CHECK(f.node->stats().write_requests == 16);
  CHECK(f.node->stats().read_requests == 16);
}

TEST_CASE("a request of very many repetitions may have nothing on a server") {
  constexpr std::uint64_t repetitions = 2'500'000;
  const sparse_file f(repetitions * 16);
  // Of stripes of 8 bytes on two nodes, those of the other one.
  const auto shape = granted(f.signer, 2, repetitions * 16, {0, 2, 8}, true);
  REQUIRE_FALSE(create(*f.node, shape));
  request r;
  r.add({.file_offset = 8, .run = 8, .depth = 1, .levels = {{{repetitions, 16, 8}}}});
  bytes memory(r.bytes(), std::byte{7});
  const failure failed = read(*f.node, shape, 0, r, memory.data());
  INFO(failed.what);
  CHECK_FALSE(failed);
  CHECK(memory == bytes(r.bytes(), std::byte{7}));
}

TEST_CASE("regions that overlap are refused, also where they go in several messages") {
  constexpr std::uint64_t regions = 2'500'000;
  const sparse_file f(regions * 4 + 8);
  const bytes out(regions * 8, std::byte{1});
  const failure refused = write(*f.node, f.shape, 0, comb(regions, 8, 4), out.data());
  CHECK(refused.code == errc::invalid_request);
  CHECK_THAT(refused.what, Catch::Contains("overlap"));
  bytes in(8, std::byte{7});
  REQUIRE_FALSE(read(*f.node, f.shape, 0, request::contiguous(0, 8), in.data()));
  CHECK(in == bytes(8));
}

TEST_CASE("many requests of many regions take a bounded amount of memory, and all are answered") {
  constexpr std::uint64_t regions = 250'000;
  constexpr std::uint64_t requests = 40;
  const sparse_file f(regions * 2);
  const file_descriptor fd = f.connection();
  const std::uint64_t before = resident_bytes();
  std::uint64_t most = before;
  f.ask(fd, requests, comb(regions, 1, 2));
  std::uint64_t answered = 0;
  for (received_frame answer; answered < requests && receive(fd, answer);) {
    CHECK_FALSE(answer.header.has(wire::frame_header::failed));
    answered += answer.header.has(wire::frame_header::last);
    most = std::max(most, resident_bytes());
  }
  CHECK(answered == requests);
  CHECK(most < before + resident_per_byte * (300 << 20));
}

TEST_CASE("a connection with more requests than the server has room for is called busy") {
  constexpr std::uint64_t regions = 250'000;
  constexpr std::uint64_t requests = 8;
  const sparse_file f(regions * 32);
  const file_descriptor fd = f.connection();
  f.ask(fd, requests, comb(regions, 16, 32));
  // What the client does not take stands in the way of the later ones, of which it hears every second.
  let_pass(std::chrono::milliseconds(2500));
  std::uint64_t answered = 0, busy = 0;
  for (received_frame answer; answered < requests && receive(fd, answer);) {
    CHECK_FALSE(answer.header.has(wire::frame_header::failed));
    answered += answer.header.has(wire::frame_header::last);
    busy += answer.header.id == 0;
  }
  CHECK(answered == requests);
  CHECK(busy >= 1);
  CHECK(busy <= 10);
}
