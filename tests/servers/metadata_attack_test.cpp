// Tests of what one client does to the metadata server, and what the others notice of it.
//
// Time is not measured: an innocent client has a deadline for each call, which it keeps or not.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "storage/wire/metadata_messages.hpp"
#include "support/cluster_fixture.hpp"
#include "support/raw_connection.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::testing;
using namespace std::chrono_literals;
namespace pb = ooc::wire::pb;

namespace {

file_descriptor attacker(const cluster& servers) {
  return testing::welcomed(servers.client_options().address, wire::server_role::metadata);
}

std::string call_frame(const pb::Call& c) {
  wire::frame_header h;
  h.kind = wire::frame_kind::metadata;
  return wire::encode_frame(h, c.SerializeAsString());
}

}  // namespace

TEST_CASE("connections that never stop calling keep nobody waiting") {
  cluster servers;
  const auto innocent = servers.client({::geteuid(), ::getegid()}, 3s);
  innocent->mkdir("folder", 0755, false);
  pb::Call look;
  look.set_op(pb::OP_LOOKUP);
  look.set_path("folder");
  const std::string frame = call_frame(look);
  std::string many;
  for (int i = 0; i < 100; ++i) many += frame;
  std::vector<file_descriptor> floods;
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> answered{0};
  for (int i = 0; i < 4; ++i) floods.push_back(attacker(servers));
  for (const file_descriptor& fd : floods) {
    threads.emplace_back([&] {
      while (send_all(fd, many)) {
      }
    });
    threads.emplace_back([&] {
      std::vector<char> some(1 << 16);
      while (::recv(fd.get(), some.data(), some.size(), 0) > 0) ++answered;
    });
  }
  CHECK(soon([&] { return answered >= 100; }));
  for (int i = 0; i < 100; ++i) CHECK(innocent->lookup("folder").path == "folder");
  for (const file_descriptor& fd : floods) ::shutdown(fd.get(), SHUT_RDWR);
  for (std::thread& t : threads) t.join();
}

TEST_CASE("long calls that are never complete stay within the memory that the server has") {
  cluster servers({.metad = {"--memory", "16"}});
  const auto innocent = servers.client();
  innocent->mkdir("folder", 0755, false);
  const std::uint64_t before = servers.metad().memory();
  pb::Call c;
  c.set_op(pb::OP_SET_ATTRIBUTE);
  c.set_sequence(1);
  c.set_path("folder");
  c.set_key("k");
  c.set_value(std::string(2'000'000, 'x'));
  std::string frame = call_frame(c);
  frame.pop_back();
  std::vector<file_descriptor> attackers;
  for (int i = 0; i < 100; ++i) {
    attackers.push_back(attacker(servers));
    // As much as the server, or the system on its behalf, takes.
    ::send(attackers.back().get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  for (int i = 0; i < 100; ++i) {
    CHECK(innocent->lookup("folder").path == "folder");
    for (const file_descriptor& fd : attackers) ::send(fd.get(), frame.data(), 1000, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  CHECK(servers.metad().memory() < before + ((16 + 64) << 20));
}

TEST_CASE("answers that nobody takes stay within the memory that the server has") {
  cluster servers({.metad = {"--memory", "16"}});
  const auto innocent = servers.client();
  innocent->mkdir("folder", 0755, false);
  for (int i = 0; i < 1000; ++i) innocent->mkdir("folder/" + std::string(200, 'n') + std::to_string(i), 0755, false);
  const std::uint64_t before = servers.metad().memory();
  pb::Call list;
  list.set_op(pb::OP_LIST);
  list.set_path("folder");
  std::string frames;
  for (int i = 0; i < 50; ++i) frames += call_frame(list);
  std::vector<file_descriptor> attackers;
  for (int i = 0; i < 200; ++i) {
    attackers.push_back(attacker(servers));
    REQUIRE(send_all(attackers.back(), frames));
  }
  for (int i = 0; i < 100; ++i) CHECK(innocent->lookup("folder").path == "folder");
  CHECK(servers.metad().memory() < before + ((16 + 64) << 20));
}

TEST_CASE("clients of a metadata server that hold nothing give way, and those that do stay") {
  cluster servers({.metad = {"--max-connections", "6"}});
  const auto holder = servers.client();
  storage::new_file f;
  f.size = 10;
  f.striping = {0, 1, 4096};
  const storage::entry made = holder->create("f", f);
  holder->commit(made.id);
  const auto lease = holder->claim_writer(made.id, false);
  REQUIRE(lease);
  std::vector<file_descriptor> idle;
  for (int i = 0; i < 5; ++i) idle.push_back(attacker(servers));
  // It waits until they have been idle for as long as that takes.
  CHECK(soon([&] {
    try {
      return servers.client()->lookup("f").id == made.id;
    } catch (const error&) {  // refused so far
      return false;
    }
  }));
  CHECK_FALSE(servers.client()->claim_writer(made.id, false));
}
