// How clients share an I/O server: memory for transfers, and turns.
#include <catch2/catch.hpp>
#include <atomic>
#include <thread>

#include "iod/allowance.hpp"
#include "servers/iod_fixture.hpp"
#include "servers/raw_connection.hpp"
#include "storage/modelled_file.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;

TEST_CASE("what a client wants beyond its allowance waits, in order, until it has given back") {
  const auto shared = std::make_shared<iod::allowance>(10);
  std::vector<int> order;
  std::vector<iod::allowance::claim> held(4);
  const auto take = [&](int n, std::uint64_t bytes) {
    shared->take(bytes, [&, n](iod::allowance::claim c) {
      order.push_back(n);
      held[static_cast<std::size_t>(n)] = std::move(c);
    });
  };
  take(0, 6);
  take(1, 8);
  take(2, 2);  // there would be room for it, but not its turn
  take(3, 2);
  CHECK(order == std::vector{0});
  held[0].reset();
  CHECK(order == std::vector{0, 1, 2});
  held[1].reset();
  CHECK(order == std::vector{0, 1, 2, 3});
}

TEST_CASE("a slow client with many reads under way keeps no other one's reads waiting") {
  const test_signer signer;
  temporary_folder folder;
  iod::iod_options o;
  o.buffers = 32 << 20;  // three quarters of it are for reads
  running_iod server(signer, folder.path(), {"127.0.0.1:0"}, o);
  auto node = open_remote_node(client_options(server.addresses()));
  constexpr std::uint64_t size = 48 << 20;
  const auto shape = granted(signer, 1, size);
  REQUIRE_FALSE(create(*node, shape));
  bytes memory(size, std::byte{5});
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, size), memory.data()));

  const file_descriptor slow =
      welcomed(server.addresses()[0], wire::server_role::io, nullptr, test_uuid);
  for (std::uint64_t id = 1; id <= 48; ++id)
    REQUIRE(send_all(slow, read_frame(id, shape, request::contiguous(0, size))));
  std::atomic<bool> stop{false};
  std::thread taking([&] {
    std::vector<char> some(16 << 10);
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!stop && std::chrono::steady_clock::now() < end &&
           ::recv(slow.get(), some.data(), some.size(), 0) > 0)
      std::this_thread::sleep_for(50ms);
    ::shutdown(slow.get(), SHUT_RDWR);
  });
  const auto reading = [&] { return server.server().buffers()->in_use(); };
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (reading() < (2 << 20) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(300ms);

  // More than are answered without a turn.
  const auto begin = std::chrono::steady_clock::now();
  failure failed;
  for (int i = 0; i < 20 && !failed; ++i)
    failed = read(*node, shape, 0, request::contiguous(0, 128 << 10), memory.data());
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
  INFO(failed.what);
  CHECK_FALSE(failed);
  CHECK(reading() <= (3 << 20));
  stop = true;
  taking.join();
}

TEST_CASE("reads that fail, and connections that end, give back what they held of the memory") {
  const test_signer signer;
  temporary_folder folder;
  iod::iod_options o;
  o.buffers = 4 << 20;
  running_iod server(signer, folder.path(), {"127.0.0.1:0"}, o);
  auto node = open_remote_node(client_options(server.addresses()));
  constexpr std::uint64_t size = 2 << 20;
  const auto shape = granted(signer, 1, size);
  REQUIRE_FALSE(create(*node, shape));
  const bytes data = pattern(size);
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, size), data.data()));
  flip_byte(node_folder(folder.path()).data(1), 5 * 4096 + 17);
  bytes back(size);
  for (int i = 0; i < 20; ++i)
    CHECK(read(*node, shape, 0, request::contiguous(0, size), back.data()).code == errc::corrupt);
  for (int i = 0; i < 20; ++i) {
    const file_descriptor gone =
        welcomed(server.addresses()[0], wire::server_role::io, nullptr, test_uuid);
    for (std::uint64_t id = 1; id <= 10; ++id)
      REQUIRE(send_all(gone, read_frame(id, shape, request::contiguous(0, size))));
  }
  const failure f = read(*node, shape, 0, request::contiguous(1 << 20, 1 << 20), back.data());
  INFO(f.what);
  CHECK_FALSE(f);
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (server.server().buffers()->in_use() != 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  CHECK(server.server().buffers()->in_use() == 0);
}
