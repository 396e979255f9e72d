// I/O servers and their clients over loopback, in one process.
#include <array>
#include <catch2/catch.hpp>
#include <future>
#include <map>
#include <thread>

#include "storage/service/node_locality.hpp"
#include "support/faulty_proxy.hpp"
#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/raw_connection.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

shape_ptr with_capability(const shape_ptr& shape, capability_ptr t) {
  auto s = std::make_shared<file_shape>(*shape);
  s->capability = std::move(t);
  return s;
}

struct node_with_server {
  explicit node_with_server(std::vector<std::string> listen = {"127.0.0.1:0"},
                            std::chrono::milliseconds deadline = std::chrono::seconds(20))
      : iod(signer, folder.path(), std::move(listen)),
        node(open_remote_node(client_options(iod.addresses(), deadline))) {}

  shape_ptr shape(file_id id, std::uint64_t size, striping s = {0, 1, 65536}) { return granted(signer, id, size, s); }

  test_signer signer;
  temporary_folder folder;
  running_iod iod;
  std::shared_ptr<io_service> node;
};

}  // namespace

TEST_CASE("random operations through a server equal a plain array") {
  const std::uint64_t seed = random_seed("served_random_life");
  constexpr std::uint64_t size = 2'000'003;
  const test_signer signer;
  int n = 0;
  for (const std::uint64_t sf : {512, 8000, 65536})
    for (const std::uint32_t nn : {1, 3})
      for (const bool direct : {true, false}) {
        std::map<fs::path, std::unique_ptr<running_iod>> servers;
        const std::size_t element = n % 2 == 0 ? 0 : 7;
        CAPTURE(sf, nn, element, direct);
        const auto shape = make_shape(77, {0, nn, sf}, size, n % 3 == 0, pattern(element));
        random_life(
            with_capability(shape, signer.capability(*shape)),
            [&](const fs::path& folder) {
              auto& server = servers[folder];
              if (!server || n % 2 == 0) {
                server.reset();
                iod::iod_options o;
                o.direct_io = direct;
                server = std::make_unique<running_iod>(signer, folder, std::vector<std::string>{"127.0.0.1:0"}, o);
              }
              return open_remote_node(client_options(server->addresses()));
            },
            60, seed + static_cast<std::uint64_t>(n));
        ++n;
      }
}

TEST_CASE("a connection that has been welcomed is fenced, however soon") {
  node_with_server s;
  const std::string address = s.iod.addresses().front();
  for (int i = 0; i < 500; ++i) {
    const auto client = wire::random_client_id();
    const file_descriptor second = welcomed(address, wire::server_role::io, test_uuid, client, 2);
    const timeval patience{10, 0};
    wire::frame_header h;
    h.kind = wire::frame_kind::fence;
    h.id = 1;
    const std::string fence = wire::encode_frame(h, wire::encode_fence({1}));
    const file_descriptor first = welcomed(address, wire::server_role::io, test_uuid, client, 1);
    REQUIRE(send_all(second, fence));
    received_frame answer;
    REQUIRE(receive(second, answer));
    REQUIRE_FALSE(answer.header.has(wire::frame_header::failed));
    char c = 0;
    ::setsockopt(first.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    REQUIRE(::recv(first.get(), &c, 1, 0) == 0);
  }
}

TEST_CASE("connections that fence each other all end") {
  iod::requests_in_flight active;
  bool over = false;
  active.begin(1, {});
  active.only_waits(1);
  active.begin(2, {});
  active.when_over([&] { over = true; });
  active.no_more();
  CHECK_FALSE(over);
  active.end(2);
  CHECK(over);
  active.end(1);  // the others are over too, at last

  node_with_server s;
  const std::string address = s.iod.addresses().front();
  wire::frame_header h;
  h.kind = wire::frame_kind::fence;
  h.id = 1;
  for (int i = 0; i < 200; ++i) {
    const auto client = wire::random_client_id();
    const file_descriptor first = welcomed(address, wire::server_role::io, test_uuid, client, 1);
    const file_descriptor second = welcomed(address, wire::server_role::io, test_uuid, client, 2);
    (void)send_all(first, wire::encode_frame(h, wire::encode_fence({2})));
    (void)send_all(second, wire::encode_frame(h, wire::encode_fence({1})));
  }
  REQUIRE(soon([&] { return s.iod.server().connections() == 0; }));
}

TEST_CASE("a server makes a stripe object again that went with the power for who says that its file is still there") {
  const test_signer signer;
  temporary_folder folder;
  auto f = std::make_shared<file_shape>(*granted(signer, 1, 10'000));
  f->generation = 1;
  bytes back(10'000, std::byte{1});
  const auto reading = [&](const shape_ptr& shape) {
    const running_iod iod(signer, folder.path());
    const auto node = open_remote_node(client_options(iod.addresses()));
    return read(*node, shape, 0, request::contiguous(0, back.size()), back.data()).code;
  };
  {
    const running_iod iod(signer, folder.path());
    REQUIRE_FALSE(create(*open_remote_node(client_options(iod.addresses())), f));
  }
  for (const fs::path& file : node_folder(folder.path()).files(1)) fs::remove(file);
  change_noted_boot(folder.path());
  CHECK(reading(f) == std::errc::no_such_file_or_directory);
  auto known = std::make_shared<file_shape>(*f);
  known->still_there = true;
  CHECK_FALSE(reading(known));
  CHECK(back == bytes(10'000));
}

TEST_CASE("a request of many parts arrives whole, through several addresses too") {
  temporary_folder place;
  const std::string unix_address = "unix:" + (place.path() / "iod").string();
  for (const auto& listen :
       std::vector<std::vector<std::string>>{{"127.0.0.1:0"}, {unix_address}, {"127.0.0.1:0", "127.0.0.2:0"}}) {
    node_with_server s(listen);
    constexpr std::uint64_t size = 21'000'001;
    const auto shape = s.shape(3, size, {0, 2, 8192});
    REQUIRE_FALSE(create(*s.node, shape));
    const bytes data = pattern(size);
    REQUIRE_FALSE(write(*s.node, shape, 0, request::contiguous(0, size), data.data()));
    bytes back(size);
    REQUIRE_FALSE(read(*s.node, shape, 0, request::contiguous(0, size), back.data()));
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < size; ++i)
      wrong += back[i] != (shape->striping.stripe_index_of(i) == 0 ? data[i] : std::byte{0});
    CHECK(wrong == 0);
    CHECK(s.node->stats().read_requests == listen.size());
    CHECK(s.iod.server().statistics().io.bytes_written == shape->striping.object_size(0, size));
  }
}

TEST_CASE("a server's refusal says what and why") {
  node_with_server s;
  const auto shape = s.shape(5, 100000);
  REQUIRE_FALSE(create(*s.node, shape));
  bytes memory(100000);
  const auto reading = [&](const shape_ptr& f) {
    return read(*s.node, f, 0, request::contiguous(0, 100000), memory.data());
  };
  CHECK_FALSE(reading(shape));
  REQUIRE_FALSE(write(*s.node, shape, 0, request::contiguous(0, 100000), memory.data()));
  CHECK(create(*s.node, shape).code == std::errc::file_exists);

  const failure none = reading(with_capability(shape, nullptr));
  CHECK(none.code == std::errc::permission_denied);
  CHECK_THAT(none.what, Catch::Contains("node 0 (127.0.0.1:") && Catch::Contains("capability"));
  const failure other = reading(with_capability(shape, granted(s.signer, 6, 100000)->capability));
  CHECK(other.code == std::errc::permission_denied);
  CHECK_THAT(other.what, Catch::Contains("file 6"));
  const failure late = reading(with_capability(shape, s.signer.capability(*shape, 15, -1)));
  CHECK(late.code.value() == EKEYEXPIRED);
  const failure unequal = reading(with_capability(shape, test_signer().capability(*shape)));
  CHECK(unequal.code == std::errc::permission_denied);
  const auto read_only = with_capability(shape, s.signer.capability(*shape, wire::right_read));
  CHECK_FALSE(reading(read_only));
  CHECK(write(*s.node, read_only, 0, request::contiguous(0, 100000), memory.data()).code ==
        std::errc::permission_denied);
  // The connection goes on after all of that.
  CHECK_FALSE(reading(shape));
}

TEST_CASE("corruption on the server's disk is an error at the client, and only there") {
  node_with_server s;
  const auto shape = s.shape(5, 400000);
  REQUIRE_FALSE(create(*s.node, shape));
  bytes data = pattern(400000), back(400000);
  REQUIRE_FALSE(write(*s.node, shape, 0, request::contiguous(0, 400000), data.data()));
  flip_byte(node_folder(s.folder.path()).data(5), 5 * 4096 + 17);
  const failure f = read(*s.node, shape, 0, request::contiguous(0, 400000), back.data());
  CHECK(f.code == errc::corrupt);
  CHECK_THAT(f.what, Catch::Contains("node 0 (127.0.0.1:"));
  CHECK_FALSE(read(*s.node, shape, 0, request::contiguous(0, 5 * 4096), back.data()));
  const auto [failed, report] = verify(*s.node, shape);
  CHECK_FALSE(failed);
  CHECK(report.corrupt == 1);
  CHECK(report.problems.size() == 1);
}

TEST_CASE("a server that is not there is named when the deadline has passed") {
  auto node = open_remote_node(client_options({"127.0.0.1:1"}, std::chrono::milliseconds(300)));
  bytes memory(100);
  const failure f = read(*node, make_shape(1, {0, 1, 4096}, 100), 0, request::contiguous(0, 100), memory.data());
  CHECK(f.code == std::errc::timed_out);
  CHECK_THAT(f.what, Catch::Contains("127.0.0.1:1") && Catch::Contains("0.3 s") && Catch::Contains("ooc-iod"));
}

TEST_CASE("a server that comes back is used again, and what was under way is done") {
  const test_signer signer;
  temporary_folder folder, place;
  const std::vector<std::string> listen{"unix:" + (place.path() / "iod").string()};
  auto server = std::make_unique<running_iod>(signer, folder.path(), listen);
  const auto node = open_remote_node(client_options(listen));
  const auto shape = granted(signer, 1, 8 << 20);
  REQUIRE_FALSE(create(*node, shape));
  const bytes data = pattern(8 << 20);
  std::atomic<bool> stop{false};
  std::mt19937_64 random(random_seed("server that comes back"));
  std::thread breaker([&] {
    for (int i = 0; i < 8; ++i) {
      random_pause(std::chrono::milliseconds(between(random, 5, 60)));
      server.reset();
      server = std::make_unique<running_iod>(signer, folder.path(), listen);
    }
    stop = true;
  });
  int rounds = 0;
  for (; !stop; ++rounds) {
    const failure w = write(*node, shape, 0, request::contiguous(0, data.size()), data.data());
    INFO(w.what);
    CHECK_FALSE(w);
    bytes back(data.size());
    CHECK_FALSE(read(*node, shape, 0, request::contiguous(0, data.size()), back.data()));
    CHECK(back == data);
  }
  breaker.join();
  CHECK(rounds > 0);
}

TEST_CASE("a write that was given up after the deadline is not done after what was written since") {
  const test_signer signer;
  temporary_folder folder;
  running_iod server(signer, folder.path());
  faulty_proxy way(server.addresses().front());
  const auto node = open_remote_node(client_options({way.address()}, std::chrono::seconds(1)));
  const auto shape = granted(signer, 1, 4096);
  const request all = request::contiguous(0, 4096);
  REQUIRE_FALSE(create(*node, shape));
  way.hold();
  const bytes late(4096, std::byte{1}), acknowledged(4096, std::byte{2});
  const failure f = write(*node, shape, 0, all, late.data());
  REQUIRE(f.code == std::errc::timed_out);
  way.restore();
  REQUIRE(soon([&] { return !write(*node, shape, 0, all, acknowledged.data()); }));
  way.let_go();
  bytes back(4096);
  CHECK(never_within(std::chrono::milliseconds(500),
                     [&] { return read(*node, shape, 0, all, back.data()) || back != acknowledged; }));
}

namespace {

bool is_near(const std::shared_ptr<io_service>& n) {
  const known_locality d = localities_of({&n, 1}).front();
  return !d.failed && d.far == locality::host;
}

}  // namespace

TEST_CASE("a server on this host is reached by its Unix socket, which the network is spared") {
  const test_signer signer;
  temporary_folder folder, place;
  const std::string local = "unix:" + (place.path() / "iod").string();
  running_iod server(signer, folder.path(), {"127.0.0.1:0", local});
  const std::string tcp = server.addresses().front();
  faulty_proxy network(tcp, {}, 1);
  const auto node = open_remote_node(client_options({network.address(), local}));
  CHECK(is_near(node));
  constexpr std::uint64_t size = 1 << 20;
  const auto shape = granted(signer, 1, size);
  REQUIRE_FALSE(create(*node, shape));
  const bytes data = pattern(size);
  bytes back(size);
  const auto write_and_read = [&] {
    CHECK_FALSE(write(*node, shape, 0, request::contiguous(0, size), data.data()));
    CHECK_FALSE(read(*node, shape, 0, request::contiguous(0, size), back.data()));
  };
  // Until both connections are made, the one that is there is used; greetings take less than a request.
  constexpr std::uint64_t greetings = 64 << 10;
  const auto bytes_of = [&](int rounds) {
    const std::uint64_t before = network.bytes();
    for (int i = 0; i < rounds; ++i) write_and_read();
    return network.bytes() - before;
  };
  CHECK(soon([&] { return bytes_of(1) <= greetings; }));
  CHECK(bytes_of(10) < greetings);
  CHECK(back == data);
}

TEST_CASE("an address at which another node of the store answers is not used") {
  const test_signer signer;
  temporary_folder mine, others, place;
  // On a cluster, the same path is another server's socket on every host.
  const std::string path = "unix:" + (place.path() / "iod").string();
  iod::iod_options second;
  second.node = 1;
  running_iod here(signer, others.path(), {path});
  running_iod there(signer, mine.path(), {"127.0.0.1:0"}, second);
  auto o = client_options({path, there.addresses().front()});
  o.index = 1;
  const auto node = open_remote_node(o);
  const auto shape = granted(signer, 1, 10000);
  REQUIRE_FALSE(create(*node, shape));
  const bytes data = pattern(10000);
  for (int i = 0; i < 50; ++i) CHECK_FALSE(write(*node, shape, 0, request::contiguous(0, 10000), data.data()));
  CHECK(here.server().statistics().io.write_requests == 0);
  CHECK(there.server().statistics().io.write_requests == 50);
}

TEST_CASE("clients that read and write at once need more buffers than there are, and all end") {
  const test_signer signer;
  temporary_folder folder;
  iod::iod_options o;
  o.memory = 4 << 20;
  o.workers = 2;
  running_iod server(signer, folder.path(), {"127.0.0.1:0"}, o);
  constexpr std::uint64_t size = 6 << 20;
  constexpr std::size_t clients = 6;
  const bytes data = pattern(size);
  std::vector<std::thread> threads;
  std::array<failure, clients> failed;
  for (std::size_t i = 0; i < clients; ++i)
    threads.emplace_back([&, i] {
      const auto node = open_remote_node(client_options(server.addresses(), std::chrono::seconds(6)));
      const auto shape = granted(signer, i + 1, size);
      failed[i] = create(*node, shape);
      bytes back(size);
      for (int round = 0; round < 10 && !failed[i]; ++round) {
        std::promise<failure> written, read;
        const auto all = std::make_shared<const request>(request::contiguous(0, size));
        node->write(shape, 0, all, data.data(), [&](const failure& f) { written.set_value(f); });
        node->read(shape, 0, all, back.data(), [&](const failure& f) { read.set_value(f); });
        failed[i] = written.get_future().get();
        const failure f = read.get_future().get();
        if (!failed[i]) failed[i] = f;
      }
    });
  for (std::thread& t : threads) t.join();
  for (const failure& f : failed) {
    INFO(f.what);
    CHECK_FALSE(f);
  }
}
