// I/O servers behind bad networks and before bad clients.
#include <catch2/catch.hpp>

#include "support/faulty_proxy.hpp"
#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/raw_connection.hpp"
#include "support/resident_bytes.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;

// What went wrong must either be repaired behind the scenes or reported; bytes that are delivered
// are right, always.
TEST_CASE("a network that flips, drops, delays and cuts never delivers a wrong byte") {
  const std::uint64_t seed = random_seed("bad_network");
  const int longer = std::getenv("OOC_TEST_LONG") != nullptr ? 15 : 1;
  int n = 0;
  std::uint64_t all_faults = 0;
  struct network {
    proxy_faults faults;
    int requests;  // a dropped block costs its request a deadline
  };
  for (const auto& [faults, requests] :
       {network{{.flip = 0.01}, 300}, network{{.cut = 0.02}, 300}, network{{.delay = 0.1}, 150},
        network{{.drop = 0.002}, 120}, network{{0.003, 0.001, 0.003, 0.01}, 80}}) {
    const test_signer signer;
    temporary_folder folder;
    running_iod server(signer, folder.path());
    faulty_proxy proxy(server.addresses()[0], faults, seed + static_cast<std::uint64_t>(n));
    CAPTURE(n, seed);
    std::mt19937_64 random(seed + 100 + static_cast<std::uint64_t>(n));
    auto node = open_remote_node(client_options({proxy.address()}, 3s));
    constexpr std::uint64_t size = 3'000'001;
    const auto shape = granted(signer, 9, size);
    // While the server counts as gone, it fails at once.
    REQUIRE(soon([&] { return !create(*node, shape); }));
    // Each byte may have one of several values after a write that was reported as failed.
    std::vector<std::byte> contents(size);
    std::vector<bool> unknown(size);
    aligned_bytes memory(4 << 20);
    int failures = 0, successes = 0;
    // A server that was silent for the deadline counts as gone, and all requests fail at once until it
    // answers again: one failure.
    const auto count = [&](const failure& f) {
      ++(f ? failures : successes);
      std::byte one;
      if (f.code == std::errc::timed_out)
        CHECK(soon([&] { return !read(*node, shape, 0, request::contiguous(0, 1), &one); }));
    };
    for (int asked = 0; asked < longer * requests; ++asked) {
      const request r = random_request(random, size);
      if (between(random, 0, 1) == 0) {
        for (std::size_t i = 0; i < memory.size(); i += 8) {
          const std::uint64_t v = random();
          std::memcpy(&memory[i], &v, 8);
        }
        const failure f = write(*node, shape, 0, r, memory.data());
        count(f);
        r.for_each_run([&](std::uint64_t file, std::uint64_t m, std::uint64_t bytes) {
          for (std::uint64_t i = 0; i < bytes; ++i) {
            contents[file + i] = memory[m + i];
            unknown[file + i] = static_cast<bool>(f);
          }
        });
      } else {
        const failure f = read(*node, shape, 0, r, memory.data());
        count(f);
        INFO(f.what);
        CHECK((!f || f.code == std::errc::timed_out || f.code == errc::corrupt || f.code == std::errc::bad_message));
        std::uint64_t wrong = 0;
        if (!f)
          r.for_each_run([&](std::uint64_t file, std::uint64_t m, std::uint64_t bytes) {
            for (std::uint64_t i = 0; i < bytes; ++i)
              wrong += !unknown[file + i] && memory[m + i] != contents[file + i];
          });
        REQUIRE(wrong == 0);
      }
    }
    all_faults += proxy.faults();
    CHECK(successes > 5 * failures);
    // Every byte that was acknowledged is there, and whole, once the network is good.
    proxy.heal();
    auto direct = open_remote_node(client_options(server.addresses(), 20s));
    bytes back(size);
    REQUIRE_FALSE(read(*direct, shape, 0, request::contiguous(0, size), back.data()));
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < size; ++i) wrong += !unknown[i] && back[i] != contents[i];
    CHECK(wrong == 0);
    CHECK(verify(*direct, shape).second.corrupt == 0);
    ++n;
  }
  CHECK(all_faults > 0);
}

TEST_CASE("malformed messages end their connection and nothing else") {
  const std::uint64_t seed = random_seed("malformed");
  std::mt19937_64 random(seed);
  const test_signer signer;
  temporary_folder folder;
  running_iod server(signer, folder.path());
  auto node = open_remote_node(client_options(server.addresses()));
  const auto shape = granted(signer, 1, 100000);
  REQUIRE_FALSE(create(*node, shape));
  bytes memory(100000);
  const std::uint64_t before = resident_bytes();
  for (int i = 0; i < 10000; ++i) {
    const file_descriptor fd = raw_connection(server.addresses()[0]);
    wire::frame_header h;
    h.kind = static_cast<wire::frame_kind>(random() % 256);
    h.flags = static_cast<std::uint16_t>(random());
    h.sums = static_cast<std::uint32_t>(random());
    std::string body(random() % 200, '\0');
    for (char& c : body) c = static_cast<char>(random());
    std::string frame = wire::encode_frame(h, body, static_cast<std::uint32_t>(random()));
    if (i % 3 == 0) frame[random() % frame.size()] ^= 0x10;
    if (i % 5 == 0) frame.resize(random() % frame.size());
    send_all(fd, frame);
    if (i % 1000 == 0) REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(0, 100000), memory.data()));
  }
  REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(0, 100000), memory.data()));
  CHECK(resident_bytes() < before + (64 << 20));
}

TEST_CASE("clients that stop reading hold a bounded amount of memory, and others are served") {
  const test_signer signer;
  temporary_folder folder;
  iod::iod_options o;
  o.memory = 24 << 20;
  o.transfer_window = 1s;  // after which those who take nothing are dropped
  running_iod server(signer, folder.path(), {"127.0.0.1:0"}, o);
  auto node = open_remote_node(client_options(server.addresses()));
  constexpr std::uint64_t size = 64 << 20;
  const auto shape = granted(signer, 1, size);
  REQUIRE_FALSE(create(*node, shape));
  bytes memory(size, std::byte{5});
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, size), memory.data()));
  const std::uint64_t before = resident_bytes();
  std::vector<file_descriptor> deaf;
  for (int i = 0; i < 20; ++i) {
    file_descriptor fd = welcomed(server.addresses()[0], wire::server_role::io, test_uuid);
    for (std::uint64_t id = 1; id <= 50; ++id)
      REQUIRE(send_all(fd, read_frame(id, shape, request::contiguous(0, size))));
    deaf.push_back(std::move(fd));
  }
  // 64,000 MiB were asked for, and nobody takes them.
  for (int i = 0; i < 20; ++i) REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(0, 4 << 20), memory.data()));
  CHECK(resident_bytes() < before + (120 << 20));
}

TEST_CASE("peers that say nothing keep no client of an I/O server out") {
  const test_signer signer;
  temporary_folder folder;
  iod::iod_options o;
  o.max_connections = 8;
  running_iod server(signer, folder.path(), {"127.0.0.1:0"}, o);
  std::vector<file_descriptor> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(raw_connection(server.addresses()[0]));
  // Within less than a stranger may stay silent.
  auto node = open_remote_node(client_options(server.addresses(), 3s));
  const failure f = create(*node, granted(signer, 1, 100000));
  INFO(f.what);
  CHECK_FALSE(f);
}

TEST_CASE("an I/O server that is full of clients refuses more, and drops none of them") {
  const test_signer signer;
  temporary_folder folder;
  iod::iod_options o;
  o.max_connections = 2;
  running_iod server(signer, folder.path(), {"127.0.0.1:0"}, o);
  std::vector<std::shared_ptr<io_service>> nodes;
  for (int i = 0; i < 3; ++i) {
    nodes.push_back(open_remote_node(client_options(server.addresses(), 1s)));
    const failure f = create(*nodes.back(), granted(signer, 1 + static_cast<file_id>(i), 100000));
    INFO(f.what);
    CHECK(static_cast<bool>(f) == (i == 2));
  }
  CHECK_FALSE(sync(*nodes[0], granted(signer, 1, 100000)));
}
