// Tests of what one client does to an I/O server, and what the others notice of it.
//
// Time is not measured: an innocent client has a deadline for each call, which it keeps or not.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/pauses.hpp"
#include "support/raw_connection.hpp"
#include "support/resident_bytes.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t part = storage::io_part::max_bytes;

std::string frame_of(wire::frame_kind kind, std::uint64_t id, const shape_ptr& file, const request& r,
                     const wire::frame_header& more = {}, std::uint32_t payload = 0) {
  wire::io_request what;
  what.file = file;
  what.wanted = std::make_shared<const request>(r);
  wire::frame_header h = more;
  h.kind = kind;
  h.id = id;
  return wire::encode_frame(h, wire::encode(what), payload);
}

/// The frame that a client sends before the bytes of a write of one part.
std::string write_head(std::uint64_t id, const shape_ptr& file) {
  wire::frame_header h;
  h.flags = wire::frame_header::last;
  h.sums = part / 4096;
  return frame_of(wire::frame_kind::write, id, file, request::contiguous(0, part), h,
                  static_cast<std::uint32_t>(part + h.sums * 4));
}

struct attacked_server {
  explicit attacked_server(iod::iod_options o = small()) : iod(signer, folder.path(), {"127.0.0.1:0"}, o) {}

  static iod::iod_options small() {
    iod::iod_options o;
    o.memory = 16 << 20;
    return o;
  }
  file_descriptor attacker(const wire::client_id& client = wire::random_client_id(), std::uint32_t connection = 0) {
    return welcomed(iod.addresses()[0], wire::server_role::io, test_uuid, client, connection);
  }
  std::shared_ptr<io_service> innocent(std::chrono::milliseconds deadline = 10s) {
    return open_remote_node(client_options(iod.addresses(), deadline));
  }
  iod::iod_server& server() { return iod.server(); }

  test_signer signer;
  temporary_folder folder;
  running_iod iod;
};

/// A node with so many stripe objects.
class crowded_node final : public storage::served_node, public std::enable_shared_from_this<crowded_node> {
 public:
  explicit crowded_node(std::size_t objects) : objects_(objects) {}

  void answer(storage::node_call call, storage::completion done) override {
    for (std::size_t i = 0; i < objects_; ++i) call.answer->ids.push_back((file_id{1} << 40) + i);
    done({});
  }
  std::string name() const override { return "crowded"; }
  io_stats stats() const override { return {}; }
  std::uint64_t staging_bytes() const override { return 0; }
  std::shared_ptr<storage::served_node> on_behalf_of(storage::request_origin) override { return shared_from_this(); }
  load present_load() const override { return {}; }
  void read_part(shape_ptr, std::uint32_t, storage::io_part, std::byte*, std::uint32_t*, storage::checking,
                 storage::completion) override {}
  bool read_inline(const file_shape&, std::uint32_t, const storage::io_part&, std::byte*, std::uint32_t*) override {
    return false;
  }
  void set_store(const std::string&) override {}
  void write_part(shape_ptr, std::uint32_t, storage::io_part, const std::byte*, const std::uint32_t*,
                  storage::completion) override {}

 private:
  const std::size_t objects_;
};

}  // namespace

TEST_CASE("an answer that is longer than a message may be is refused, and the connection goes on") {
  const test_signer signer;
  temporary_folder folder;
  running_iod iod(signer, folder.path(), {"127.0.0.1:0"}, {}, std::make_shared<crowded_node>(3'000'000));
  const auto node = open_remote_node(client_options(iod.addresses(), 5s));
  const failure f = list(*node).first;
  CHECK(f.code == std::errc::message_size);
  CHECK_THAT(f.what, Catch::Contains("at most 16777216") && Catch::Contains("ooc restripe"));
}

TEST_CASE("a fence that names more connections than a client can have lost is refused") {
  attacked_server s;
  const file_descriptor attacker = s.attacker();
  wire::frame_header h;
  h.kind = wire::frame_kind::fence;
  for (const std::size_t named : {wire::max_fenced, wire::max_fenced + 1}) {
    h.id = named;
    REQUIRE(send_all(attacker, wire::encode_frame(h, wire::encode_fence(std::vector<std::uint64_t>(named, 7)))));
    received_frame answer;
    do REQUIRE(receive(attacker, answer));
    while (!answer.header.has(wire::frame_header::last));
    CHECK(answer.header.has(wire::frame_header::failed) == (named > wire::max_fenced));
  }
}

TEST_CASE("verifications leave threads to others, and end with their connection") {
  attacked_server s;
  const auto node = s.innocent();
  constexpr std::uint64_t size = std::uint64_t{2} << 30;
  const auto large = granted(s.signer, 1, size, {0, 1, 65536}, true);
  const auto small = granted(s.signer, 2, 4 * part);
  REQUIRE_FALSE(create(*node, large));
  REQUIRE_FALSE(create(*node, small));
  bytes data = pattern(4 * part);
  REQUIRE_FALSE(write(*node, small, 0, request::contiguous(0, data.size()), data.data()));
  constexpr int verifications = 64;
  {
    const file_descriptor attacker = s.attacker();
    for (std::uint64_t id = 1; id <= verifications; ++id)
      REQUIRE(send_all(attacker, frame_of(wire::frame_kind::verify, id, large, {})));
    REQUIRE(soon([&] { return s.server().statistics().waiting > verifications / 2; }));
    for (int i = 0; i < 10; ++i) {
      CHECK(s.server().statistics().running <= 2);
      const failure f = read(*node, small, 0, request::contiguous(0, data.size()), data.data());
      INFO(f.what);
      CHECK_FALSE(f);
    }
    CHECK(s.server().statistics().waiting > verifications / 2);
  }
  CHECK(soon([&] {
    const auto now = s.server().statistics();
    return now.waiting == 0 && now.running == 0;
  }));
  CHECK(s.server().statistics().io.device_bytes_read < verifications * size / 4);
}

TEST_CASE("writers that send next to nothing leave memory to others") {
  attacked_server s;
  const auto node = s.innocent();
  const auto shape = granted(s.signer, 1, 4 * part);
  REQUIRE_FALSE(create(*node, shape));
  std::vector<file_descriptor> slow;
  for (int i = 0; i < 32; ++i) {
    slow.push_back(s.attacker());
    REQUIRE(send_all(slow.back(), write_head(1, shape) + std::string(100, 'x')));
  }
  const auto& buffers = *s.server().buffers();
  // All that is given to large requests is taken.
  REQUIRE(soon([&] { return buffers.short_of_room() && buffers.in_use() >= buffers.limit() / 2; }));
  const bytes data = pattern(64 << 10);
  bytes back(data.size());
  for (int i = 0; i < 20; ++i) {
    const failure w = write(*node, shape, 0, request::contiguous(0, data.size()), data.data());
    INFO(w.what);
    CHECK_FALSE(w);
    CHECK_FALSE(read(*node, shape, 0, request::contiguous(0, back.size()), back.data()));
  }
  CHECK(back == data);
  CHECK(buffers.in_use() >= buffers.limit() / 2);
}

TEST_CASE("a transfer that is too slow ends, however steadily its bytes come, and others do not") {
  iod::iod_options o = attacked_server::small();
  o.transfer_window = 1s;
  attacked_server s(o);
  const auto node = s.innocent();
  const auto shape = granted(s.signer, 1, 16 * part);
  REQUIRE_FALSE(create(*node, shape));
  bytes data = pattern(16 * part);
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, data.size()), data.data()));
  const bool reading = GENERATE(false, true);
  CAPTURE(reading);
  const file_descriptor slow = s.attacker(), fast = s.attacker();
  int little = 16 << 10;
  ::setsockopt(slow.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  const auto all = request::contiguous(0, data.size());
  const std::string begin = reading ? read_frame(1, shape, all) : write_head(1, shape);
  REQUIRE(send_all(slow, begin));
  if (!reading) REQUIRE(send_all(fast, begin));
  std::uint64_t sent = 0;
  const std::string some(reading ? 1 : 100, 'x'), more(32 << 10, 'x');
  const auto alive = [&](const file_descriptor& fd) {
    if (!reading) return ::send(fd.get(), some.data(), some.size(), MSG_NOSIGNAL) > 0;
    char byte[100];
    return ::recv(fd.get(), byte, sizeof byte, 0) > 0;
  };
  // A slow one lasts for a window or two, looked at twice a second.
  const auto end = std::chrono::steady_clock::now() + 60s;  // a window is 1 s
  bool lives = true;
  while (lives && std::chrono::steady_clock::now() < end) {
    lives = alive(slow);
    if (!reading && sent + more.size() < part) {
      CHECK(send_all(fast, more));
      sent += more.size();
    }
    let_pass(50ms);                                              // which is what makes it slow
    if (reading && s.server().connections() < 3) lives = false;  // the rest is on its way
  }
  CHECK_FALSE(lives);
  CHECK(soon([&] { return s.server().connections() == 2; }));
}

TEST_CASE("a connection that never stops asking keeps nobody waiting, and holds its share at most") {
  attacked_server s;
  const auto node = s.innocent();
  constexpr std::uint64_t size = 8 * part;
  const auto shape = granted(s.signer, 1, size);
  REQUIRE_FALSE(create(*node, shape));
  bytes data = pattern(size);
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, size), data.data()));
  const file_descriptor flood = s.attacker();
  std::atomic<bool> stop{false};
  std::thread asking([&] {
    for (std::uint64_t id = 1; !stop; ++id) {
      const auto r = id % 2 == 0 ? request::contiguous(0, 4096) : request::contiguous(0, size);
      if (!send_all(flood, read_frame(id, shape, r))) return;
    }
  });
  std::thread taking([&] {
    std::vector<char> some(1 << 20);
    while (::recv(flood.get(), some.data(), some.size(), 0) > 0) {
    }
  });
  const auto& descriptions = *s.server().descriptions();
  REQUIRE(soon([&] { return descriptions.held() > descriptions.limit() / 4; }));
  for (int i = 0; i < 50; ++i) {
    const failure f = read(*node, shape, 0, request::contiguous(0, 128 << 10), data.data());
    INFO(f.what);
    CHECK_FALSE(f);
    CHECK(descriptions.held() <= descriptions.limit() / 2);
    CHECK(s.server().buffers()->in_use() <= s.server().buffers()->limit() / 2);
  }
  stop = true;
  ::shutdown(flood.get(), SHUT_RDWR);
  asking.join();
  taking.join();
}

TEST_CASE("descriptions of requests on many connections stay within the memory that the server has") {
  attacked_server s;
  const auto node = s.innocent();
  constexpr std::uint64_t regions = 200000, size = regions * 16;
  const auto shape = granted(s.signer, 1, size);
  REQUIRE_FALSE(create(*node, shape));
  bytes data = pattern(size);
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, size), data.data()));
  nested_request many;
  many.run = 8;
  many.depth = 1;
  many.levels[0] = {regions, 16, 8};
  request r;
  r.add(many);
  const std::uint64_t before = resident_bytes();
  std::vector<file_descriptor> attackers;
  for (int i = 0; i < 60; ++i) {
    attackers.push_back(s.attacker());
    for (std::uint64_t id = 1; id <= 8; ++id) REQUIRE(send_all(attackers.back(), read_frame(id, shape, r)));
  }
  // 480 of them, 4.8 MB each, and nobody takes the answers.
  const auto& descriptions = *s.server().descriptions();
  REQUIRE(soon([&] { return descriptions.short_of(); }));
  for (int i = 0; i < 20; ++i) {
    const failure f = read(*node, shape, 0, request::contiguous(0, 4096), data.data());
    INFO(f.what);
    CHECK_FALSE(f);
  }
  CHECK(descriptions.held() <= descriptions.limit());
  CHECK(resident_bytes() < before + resident_per_byte * ((16 + 64) << 20));
}

TEST_CASE("answers that nobody takes are counted as their client's memory") {
  attacked_server s;
  const auto node = s.innocent();
  const auto shape = granted(s.signer, 1, part);
  REQUIRE_FALSE(create(*node, shape));
  bytes data = pattern(part);
  REQUIRE_FALSE(write(*node, shape, 0, request::contiguous(0, part), data.data()));
  const std::uint64_t before = resident_bytes();
  const file_descriptor deaf = s.attacker();
  std::thread asking([&] {
    for (std::uint64_t id = 1; id <= 20000; ++id)
      if (!send_all(deaf, read_frame(id, shape, request::contiguous(0, 64 << 10)))) return;
  });
  const auto& descriptions = *s.server().descriptions();
  REQUIRE(soon([&] { return descriptions.held() > descriptions.limit() / 8; }));
  CHECK(s.server().buffers()->in_use() <= s.server().buffers()->limit() / 2);
  CHECK(resident_bytes() < before + resident_per_byte * ((16 + 64) << 20));
  ::shutdown(deaf.get(), SHUT_RDWR);
  asking.join();
  CHECK_FALSE(read(*node, shape, 0, request::contiguous(0, part), data.data()));
  CHECK(soon([&] { return descriptions.held() == 0 && s.server().buffers()->in_use() == 0; }));
}

TEST_CASE("one client has its share of the connections, and no more") {
  iod::iod_options o = attacked_server::small();
  o.max_connections = 12;
  attacked_server s(o);
  const wire::client_id one = wire::random_client_id();
  std::vector<file_descriptor> held;
  for (std::uint32_t i = 1; i <= 12; ++i) {
    try {
      held.push_back(s.attacker(one, i));
    } catch (const std::runtime_error&) {
    }
  }
  CHECK(soon([&] { return s.server().places()->held() <= 5; }));
  const auto node = s.innocent(3s);
  const failure f = create(*node, granted(s.signer, 1, 100000));
  INFO(f.what);
  CHECK_FALSE(f);
}

TEST_CASE("clients that ask nothing give way to one that wants to connect") {
  iod::iod_options o = attacked_server::small();
  o.max_connections = 6;
  attacked_server s(o);
  std::vector<file_descriptor> idle;
  for (int i = 0; i < 6; ++i) idle.push_back(s.attacker());
  // It waits until they have been idle for as long as that takes.
  const auto node = s.innocent(15s);
  const failure f = create(*node, granted(s.signer, 1, 100000));
  INFO(f.what);
  CHECK_FALSE(f);
}
