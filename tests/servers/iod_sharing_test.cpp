// How clients share an I/O server: memory for transfers, and stripe indexes.
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <new>
#include <thread>

#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/pauses.hpp"
#include "support/raw_connection.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;

namespace {

/// A server beside another, whose node may have no memory for parts.
class scarce_server final : public iod::session_host {
 public:
  explicit scarce_server(iod::iod_server& real)
      : real_(real), listeners_(context_, [this](std::shared_ptr<wire::stream_socket> socket) {
          const auto s = std::make_shared<iod::session>(*this, socket);
          boost::asio::co_spawn(
              socket->get_executor(), [s] { return s->run(); }, boost::asio::detached);
        }) {
    listeners_.start({"127.0.0.1:0"}, false);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~scarce_server() override {
    boost::asio::post(context_, [this] { listeners_.stop(); });
    thread_.join();
  }
  std::vector<std::string> addresses() const { return listeners_.addresses(); }

  storage::served_node& node() override {
    if (short_of_memory) throw std::bad_alloc();
    return real_.node();
  }
  const std::shared_ptr<iod::buffer_pool>& buffers() override { return real_.buffers(); }
  const std::shared_ptr<iod::fair_share>& descriptions() override { return real_.descriptions(); }
  const std::shared_ptr<iod::fair_share>& places() override { return real_.places(); }
  wire::server_info who_am_i() const override { return real_.who_am_i(); }
  wire::key_ptr key() const override { return real_.key(); }
  wire::revocations_ptr revoked() const override { return real_.revoked(); }
  failure check_capability(const std::string& capability, shape_ptr& file, std::uint32_t rights,
                           const iod::connected_user& who) override {
    return real_.check_capability(capability, file, rights, who);
  }
  std::size_t connections() const override { return 1; }
  void fence(const wire::client_id&, const std::vector<std::uint64_t>&, std::function<void()> done) override { done(); }
  wire::node_statistics statistics() override { return real_.statistics(); }

  std::atomic<bool> short_of_memory{false};

 private:
  iod::iod_server& real_;
  boost::asio::io_context context_;
  servers::listener_group listeners_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a pool keeps within its limit where buffers of both sizes take turns") {
  constexpr std::uint64_t limit = 4 << 20;
  const auto pool = std::make_shared<iod::buffer_pool>(limit);
  std::vector<iod::buffer_pool::buffer> held;
  const auto take_all = [&](std::size_t bytes) {
    // More clients than there are buffers.
    for (std::uint64_t client = 1; client <= limit / iod::buffer_pool::room_of(bytes); ++client)
      pool->take({1, client}, bytes, [&](iod::buffer_pool::buffer b) { held.push_back(std::move(b)); });
    CHECK(pool->in_use() >= limit / 2);
    CHECK(pool->in_use() <= limit);
    CHECK(pool->held() <= limit);
    // Those that waited come while others go.
    while (!held.empty()) std::vector<iod::buffer_pool::buffer>().swap(held);
    CHECK(pool->in_use() == 0);
    CHECK(pool->held() <= limit);
  };
  for (int round = 0; round < 2; ++round) {
    take_all(1000);
    take_all(1 << 20);
  }
}

TEST_CASE("requests for which a server has no memory are answered so, and later ones served") {
  const test_signer signer;
  temporary_folder folder;
  running_iod real(signer, folder.path());
  scarce_server scarce(real.server());
  const auto node = open_remote_node(client_options(scarce.addresses(), 5s));
  constexpr std::uint64_t size = 3 << 20;
  const auto shape = granted(signer, 1, size);
  REQUIRE_FALSE(create(*node, shape));
  const bytes data = pattern(size);
  bytes back(size);
  for (const bool short_of_memory : {true, false}) {
    scarce.short_of_memory = short_of_memory;
    for (int i = 0; i < 10; ++i)
      for (const failure& f : {write(*node, shape, 0, request::contiguous(0, size), data.data()),
                               read(*node, shape, 0, request::contiguous(0, size), back.data())}) {
        INFO(f.what);
        CHECK((f.code == std::errc::not_enough_memory) == short_of_memory);
        CHECK(static_cast<bool>(f) == short_of_memory);
      }
  }
  CHECK(back == data);
}

TEST_CASE("a slow client with many reads under way keeps no other one's reads waiting") {
  const test_signer signer;
  temporary_folder folder;
  iod::iod_options o;
  o.memory = 32 << 20;  // three quarters of it for transfers
  running_iod server(signer, folder.path(), {"127.0.0.1:0"}, o);
  auto node = open_remote_node(client_options(server.addresses()));
  constexpr std::uint64_t size = 48 << 20;
  const auto shape = granted(signer, 1, size);
  REQUIRE_FALSE(create(*node, shape));
  bytes memory(size, std::byte{5});
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, size), memory.data()));

  const file_descriptor slow = welcomed(server.addresses()[0], wire::server_role::io, test_uuid);
  for (std::uint64_t id = 1; id <= 48; ++id)
    REQUIRE(send_all(slow, read_frame(id, shape, request::contiguous(0, size))));
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> taken{0};
  std::thread taking([&] {
    std::vector<char> some(16 << 10);
    for (ssize_t n = 1; !stop && n > 0; taken += static_cast<std::uint64_t>(std::max(n, ssize_t{0}))) {
      n = ::recv(slow.get(), some.data(), some.size(), 0);
      let_pass(50ms);  // which is what makes it slow
    }
    ::shutdown(slow.get(), SHUT_RDWR);
  });
  const auto reading = [&] { return server.server().buffers()->in_use(); };
  // One client has a third; another part would be more.
  constexpr std::uint64_t third = 8 << 20;
  CHECK(soon([&] { return reading() + storage::io_part::max_bytes > third; }));

  // More than are answered without a turn.
  failure failed;
  for (int i = 0; i < 20 && !failed; ++i)
    failed = read(*node, shape, 0, request::contiguous(0, 128 << 10), memory.data());
  INFO(failed.what);
  CHECK_FALSE(failed);
  CHECK(taken < size);  // the slow one's first answer was under way all the time
  // The last answer's buffer goes back after the answer.
  CHECK(soon([&] { return reading() <= third; }));
  stop = true;
  taking.join();
}

TEST_CASE("reads that fail, and connections that end, give back what they held of the memory") {
  const test_signer signer;
  temporary_folder folder;
  iod::iod_options o;
  o.memory = 4 << 20;
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
    const file_descriptor gone = welcomed(server.addresses()[0], wire::server_role::io, test_uuid);
    for (std::uint64_t id = 1; id <= 10; ++id)
      REQUIRE(send_all(gone, read_frame(id, shape, request::contiguous(0, size))));
  }
  const failure f = read(*node, shape, 0, request::contiguous(1 << 20, 1 << 20), back.data());
  INFO(f.what);
  CHECK_FALSE(f);
  CHECK(soon([&] { return server.server().buffers()->in_use() == 0; }));
}
