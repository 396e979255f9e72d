#include <catch2/catch.hpp>

#include "storage/client/metadata_connection.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/metadata_messages.hpp"
#include "support/cluster_fixture.hpp"
#include "support/name_space.hpp"
#include "support/other_user.hpp"
#include "support/random_seed.hpp"
#include "support/raw_connection.hpp"
#include "support/run_command.hpp"

using namespace ooc;
using namespace ooc::testing;
using namespace std::chrono_literals;
namespace pb = ooc::wire::pb;

namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const usage_error& e) {
    return e.what();
  }
  return {};
}

bool says(const std::string& text, const std::string& what) {
  INFO(text);
  return text.find(what) != std::string::npos;
}

/// A welcomed connection whose bytes the test writes itself.
file_descriptor welcomed(const cluster& servers) {
  return testing::welcomed(servers.client_options().address, wire::server_role::metadata);
}

std::string call_frame(const std::string& body, wire::frame_kind kind = wire::frame_kind::metadata) {
  wire::frame_header h;
  h.kind = kind;
  h.id = 1;
  return wire::encode_frame(h, body);
}

int run_and_wait(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

}  // namespace

TEST_CASE("a keyed server serves holders of its key only, and its log says whom it refused and why") {
  cluster servers({.keyed = true});
  CHECK(servers.client()->lookup("").kind == entry_kind::folder);
  auto o = servers.client_options();
  o.client.key = wire::access_key::random();
  CHECK(says(refusal([&] { remote_metadata m(o); }), "wrong cluster key"));
  o.client.key = nullptr;
  CHECK(says(refusal([&] { remote_metadata m(o); }), "OOC_KEY"));
  CHECK(servers.metad().logged("wrong cluster key"));
}

TEST_CASE("a program that claims to be another user over a Unix socket is told why it is refused") {
  if (!can_be_others()) return;
  temporary_folder place;
  std::filesystem::permissions(place.path(), std::filesystem::perms::others_exec, std::filesystem::perm_options::add);
  const std::string address = "unix:" + (place / "metad").string();
  const auto open_as = [address](storage::credentials who) {
    return [address, who] {
      storage::remote_metadata_options o;
      o.address = address;
      o.client.id = wire::random_client_id();
      o.client.who = who;
      o.deadline = 20s;
      return refusal([&] { remote_metadata m(o); });
    };
  };
  other_user program(stranger, stranger, {}, {open_as({stranger, stranger}), open_as({0, 0}), open_as({stranger, 0})});
  const cluster servers({.metad = {"--listen", address}});
  CHECK(program.run(0).empty());
  CHECK_THAT(program.run(1), Catch::Contains("only root acts for others"));
  CHECK_THAT(program.run(2), Catch::Contains("claims to be in group 0"));
}

TEST_CASE("a client that holds a key refuses an impostor without one, also on its own machine") {
  cluster impostor;
  auto o = impostor.client_options();
  o.client.key = wire::access_key::random();
  CHECK(says(refusal([&] { remote_metadata m(o); }), "does not prove"));
}

TEST_CASE("a user's key opens the store for that user and for nobody else, and the server's log says so") {
  cluster servers({.keyed = true});
  const wire::key_ptr alice = servers.key()->for_user({"alice", 2000, {2000, 27}});
  const auto as = [&](storage::credentials who) {
    auto o = servers.client_options(who);
    o.client.key = alice;
    return o;
  };
  CHECK(remote_metadata(as({2000, 27})).lookup("").kind == entry_kind::folder);
  for (const std::uint32_t uid : {0U, 2001U})
    CHECK(says(refusal([&] {
                 remote_metadata m(as({uid, 2000}));
               }),
               "the key of user alice (uid 2000) is not one of user " + std::to_string(uid)));
  CHECK(says(refusal([&] { remote_metadata m(as({2000, 0})); }), "does not name group 0"));
  CHECK(servers.metad().logged("the key of user alice"));
  // A client that holds the cluster key may act for anybody.
  CHECK(servers.client({0, 0})->lookup("").kind == entry_kind::folder);
}

TEST_CASE("encryption is switched off by both sides or not at all") {
  cluster open({.keyed = true, .metad = {"--encrypt", "off"}}), closed({.keyed = true});
  const auto with = [&](const cluster& servers, wire::encryption frames) {
    auto o = servers.client_options();
    o.client.frames = frames;
    return refusal([&] { (void)remote_metadata(o).lookup(""); });
  };
  CHECK(with(closed, wire::encryption::on).empty());
  CHECK(with(open, wire::encryption::off).empty());
  CHECK(says(with(closed, wire::encryption::off), "leave ?encrypt=off out"));
  CHECK(says(with(open, wire::encryption::on), "put ?encrypt=off into"));
}

TEST_CASE("plain frames to a server that has a key end with the hello") {
  cluster servers({.keyed = true});
  CHECK_THROWS_WITH(welcomed(servers), Catch::Contains("wants a key of its cluster"));
  const file_descriptor fd = raw_connection(servers.metad().address());
  pb::Call look;
  look.set_op(pb::OP_LOOKUP);
  received_frame answer;
  REQUIRE(send_all(fd, call_frame(look.SerializeAsString())));
  if (receive(fd, answer)) CHECK(answer.header.has(wire::frame_header::failed));
  CHECK_FALSE(receive(fd, answer));
}

TEST_CASE("without a key a server does not listen to other machines") {
  temporary_folder folder;
  const std::string command = std::string("HOME=/nonexistent OOC_KEY= ") + OOC_METAD + " --nodes 1 --folder " +
                              (folder / "m").string() + " --listen 0.0.0.0:0 2> " + (folder / "err").string();
  CHECK(run_and_wait(command) == 1);
  CHECK(says(contents(folder / "err"), "ooc keygen"));
}

TEST_CASE("a file of another user is refused, with the reason on both sides") {
  cluster servers;
  const auto root = servers.client({0, 0}), other = servers.client({2000, 2000});
  new_file f = plain();
  f.mode = 0600;
  const entry made = root->create("mine", f);
  CHECK(failure_code([&] { other->commit(made.id); }, "another client") == EACCES);
  CHECK(failure_code([&] { other->abandon(made.id); }, "another client") == EACCES);
  root->commit(made.id);
  CHECK(failure_code([&] { other->open("mine", false); }, "user 2000 may not read") == EACCES);
  CHECK(servers.metad().logged("user 2000 may not read"));
  CHECK(failure_code([&] { other->set_size(made.id, 5, {}, 0); }, "may not change its size") == EACCES);
  CHECK(failure_code([&] { other->lock_size(made.id); }, "may not write") == EACCES);
  CHECK(failure_code([&] { other->claim_writer(made.id, true); }, "may not write") == EACCES);
  CHECK(failure_code([&] { other->removal_capability(made.id); }, "in use") == EBUSY);
  CHECK(failure_code([&] { other->removal_capability(made.id + 1000); }, "never in use") == EINVAL);
  CHECK(other->find(made.id).capability == nullptr);
  root->mkdir("closed", 0700, false);
  root->rename("mine", "closed/mine");
  CHECK(failure_code([&] { other->find(made.id); }, "closed") == EACCES);
  CHECK(root->lookup("closed/mine").size == plain().size);
}

TEST_CASE("a file is found by its number, and named, by who may pass the folders of one of its names") {
  cluster servers;
  const auto root = servers.client({0, 0}), other = servers.client({2000, 2000});
  root->mkdir("closed", 0700, false);
  root->mkdir("closed/within", 0700, false);
  root->mkdir("open", 0755, false);
  new_file f = plain();
  f.finished = true;
  const auto id = root->create("closed/within/f", f).id;
  const auto refused = "'closed': user 2000 may not pass it on the way to entry number " + std::to_string(id);
  root->link(id, "closed/also");
  CHECK(failure_code([&] { other->find(id); }, refused) == EACCES);
  root->link(id, "open/f");
  CHECK(other->find(id).size == plain().size);
  CHECK(other->find(id).path == "open/f");
  CHECK(other->open(id, false).path == "open/f");
  CHECK(root->find(id).path == "closed/within/f");
  root->unlink("open/f", false);
  CHECK(failure_code([&] { other->find(id); }, refused) == EACCES);
}

TEST_CASE("an opened file carries the rights that its mode grants, and no more") {
  cluster servers;
  const auto root = servers.client({0, 0}), other = servers.client({2000, 2000});
  root->commit(root->create("f", plain()).id);  // 0644
  const std::string uuid = root->cluster().store_uuid;
  const wire::capability_signer signer(servers.folder() / "meta/capability.key");
  const auto rights = [&](const capability_ptr& t) {
    REQUIRE(t);
    const auto v = wire::verify_capability(signer.public_key(), uuid, t->bytes(), wire::seconds_now());
    REQUIRE(v.fault == wire::capability_fault::none);
    CHECK(v.granted.expiry > wire::seconds_now() + 3500);
    return v.granted.rights;
  };
  CHECK(rights(root->open("f", true).capability) == (wire::right_read | wire::right_write));
  CHECK(rights(other->open("f", false).capability) == wire::right_read);
  CHECK(failure_code([&] { other->open("f", true); }) == EACCES);
  CHECK(rights(other->find(root->lookup("f").id).capability) == wire::right_read);
  CHECK(root->lookup("f").capability == nullptr);
  CHECK(rights(root->create("g", plain()).capability) == 15);
  CHECK(rights(root->remove("f").capability) == wire::right_remove);
}

TEST_CASE("a file that is being made is open to other clients of its maker's user, and to nobody else") {
  cluster servers;
  const auto maker = servers.client({1000, 1000}), same = servers.client({1000, 1000}),
             other = servers.client({2000, 2000});
  const auto root = servers.client({0, 0});
  root->mkdir("open", 0777, false);
  root->set_mode("open", 0777);                         // whatever the umask
  const entry made = maker->create("open/f", plain());  // 0644
  const entry told = same->find(made.id);
  REQUIRE(told.capability);
  const wire::capability_signer signer(servers.folder() / "meta/capability.key");
  const auto v = wire::verify_capability(signer.public_key(), maker->cluster().store_uuid, told.capability->bytes(),
                                         wire::seconds_now());
  CHECK(v.granted.rights == (wire::right_read | wire::right_write));
  CHECK(failure_code([&] { same->commit(made.id); }, "another client") == EACCES);
  CHECK(failure_code([&] { same->lookup("open/f"); }) == ENOENT);
  CHECK(failure_code([&] { other->find(made.id); }, "has been removed") == ENOENT);
  maker->abandon(made.id);
  CHECK(failure_code([&] { same->find(made.id); }, "has been removed") == ENOENT);
}

TEST_CASE("the right to change a size goes with the lease, and openers' rights grow with the file") {
  cluster servers;
  const auto writer = servers.client(), opener = servers.client();
  const entry made = writer->create("f", plain());
  writer->commit(made.id);
  const wire::capability_signer signer(servers.folder() / "meta/capability.key");
  const std::string uuid = writer->cluster().store_uuid;
  const auto granted = [&](const capability_ptr& t) {
    REQUIRE(t);
    const auto v = wire::verify_capability(signer.public_key(), uuid, t->bytes(), wire::seconds_now());
    REQUIRE(v.fault == wire::capability_fault::none);
    return v.granted;
  };
  const std::uint64_t before = plain().size, after = 4 * before;
  const entry opened = opener->open("f", true);
  CHECK(granted(opened.capability).geometry ==
        wire::geometry_of(before, plain().striping, plain().sparse, plain().fill));
  CHECK(failure_code([&] { writer->size_capability(made.id, after); }, "size lease") == EINVAL);
  {
    const auto lease = writer->lock_size(made.id);
    const wire::capability c = granted(writer->size_capability(made.id, after));
    CHECK(c.rights == (wire::right_resize | wire::right_write));
    CHECK(c.geometry.size == after);
    // Shrinking may have to be taken back: the larger of both sizes.
    CHECK(granted(writer->size_capability(made.id, 1)).geometry.size == before);
    writer->set_size(made.id, after, {}, 0);
  }
  CHECK(granted(opened.capability).geometry.size == before);
  const entry seen = opener->find(made.id);
  CHECK(granted(seen.capability).geometry.size == after);
  CHECK(seen.capability == opened.capability);  // who opened it before has it too
}

TEST_CASE("who has a file open for reading may write it when the mode allows it") {
  cluster servers;
  const auto root = servers.client({0, 0}), other = servers.client({2000, 2000});
  const entry made = root->create("f", plain());  // 0644
  root->commit(made.id);
  const wire::capability_signer signer(servers.folder() / "meta/capability.key");
  const auto rights = [&](const capability_ptr& t) {
    REQUIRE(t);
    return wire::verify_capability(signer.public_key(), root->cluster().store_uuid, t->bytes(), wire::seconds_now())
        .granted.rights;
  };
  const entry opened = other->open("f", false);
  CHECK(other->find(made.id).capability == opened.capability);
  root->set_mode("f", 0666);
  const entry found = other->find(made.id);
  CHECK(rights(found.capability) == (wire::right_read | wire::right_write));
  CHECK(rights(opened.capability) == wire::right_read);
  root->set_mode("f", 0600);  // who has it goes on
  CHECK(other->find(made.id).capability == found.capability);
}

TEST_CASE("random messages crash nothing and fill nothing") {
  cluster servers;
  std::mt19937_64 random(random_seed("malformed"));
  const auto client = servers.client({0, 0});
  client->mkdir("a", 0755, false);
  const std::uint64_t before = servers.metad().memory();
  pb::Call good;
  good.set_op(pb::OP_CREATE);
  good.set_sequence(1);
  good.set_path("a/b");
  good.mutable_file()->set_size(5);
  good.mutable_file()->set_nn(1);
  good.mutable_file()->set_sf(4096);
  const std::string body = good.SerializeAsString();
  file_descriptor fd = welcomed(servers);
  for (int i = 0; i < 10'000; ++i) {
    std::string frame;
    const auto what = random() % 4;
    if (what == 0) {  // a call with some bytes changed
      std::string b = body;
      for (auto n = between(random, 1, 5); n > 0; --n) b[random() % b.size()] = static_cast<char>(random());
      frame = call_frame(b);
    } else if (what == 1) {  // bytes that are no message, under any kind
      std::string b(random() % 100, '\0');
      for (char& c : b) c = static_cast<char>(random());
      frame = call_frame(b, static_cast<wire::frame_kind>(random() % 256));
    } else if (what == 2) {  // a damaged header, lengths included
      frame = call_frame(body);
      frame[random() % sizeof(wire::frame_header)] ^= static_cast<char>(1 + random() % 255);
    } else {  // noise
      frame.resize(between(random, 1, 200));
      for (char& c : frame) c = static_cast<char>(random());
    }
    const bool framed = what <= 1;
    const bool sent = send_all(fd, frame);
    received_frame answer;
    if (framed && sent && receive(fd, answer)) continue;
    CHECK_FALSE(framed);
    fd = i % 2 == 0 ? welcomed(servers) : raw_connection(servers.metad().address());
    if (i % 2 != 0) {
      send_all(fd, frame);
      fd = welcomed(servers);
    }
  }
  CHECK(client->lookup("a").kind == entry_kind::folder);
  CHECK(servers.metad().memory() < before + (64 << 20));
}

TEST_CASE("a body that is too long is refused before memory is taken for it") {
  cluster servers;
  const auto client = servers.client({0, 0});
  const std::uint64_t before = servers.metad().memory();
  const file_descriptor fd = welcomed(servers);
  wire::frame_header h;
  h.kind = wire::frame_kind::metadata;
  const std::string frame = wire::encode_frame(h, std::string(100 << 20, 'x'));
  send_all(fd, frame);
  CHECK(client->lookup("").kind == entry_kind::folder);
  CHECK(servers.metad().memory() < before + (16 << 20));
  CHECK(servers.metad().logged("the limit is"));
}

TEST_CASE("peers that say nothing keep nobody out") {
  cluster servers({.metad = {"--max-connections", "50"}});
  std::vector<file_descriptor> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(raw_connection(servers.metad().address()));
  CHECK(servers.client()->lookup("").kind == entry_kind::folder);
  CHECK(servers.client()->statistics().connections <= 50);
}

TEST_CASE("a client that takes no answers holds one of them, and others are served") {
  cluster servers;
  const auto client = servers.client({0, 0});
  client->mkdir("d", 0755, false);
  client->set_attribute("d", "big", std::string(1 << 20, 'x'));
  const std::uint64_t before = servers.metad().memory();
  pb::Call look;
  look.set_op(pb::OP_LOOKUP);
  look.set_path("d");
  const std::string frame = call_frame(look.SerializeAsString());
  std::vector<file_descriptor> deaf;
  for (int i = 0; i < 8; ++i) {
    deaf.push_back(welcomed(servers));
    timeval little{0, 20'000};
    ::setsockopt(deaf.back().get(), SOL_SOCKET, SO_SNDTIMEO, &little, sizeof little);
    for (int k = 0; k < 2000; ++k)
      if (!send_all(deaf.back(), frame)) break;
  }
  for (int i = 0; i < 100; ++i) CHECK(client->lookup("d").attributes.size() == 1);
  CHECK(servers.metad().memory() < before + (64 << 20));
}

TEST_CASE("a metadata server's command line: version, a folder in use, a configuration file, an end") {
  temporary_folder folder;
  CHECK(run_and_wait(std::string(OOC_METAD) + " --version > /dev/null") == 0);
  CHECK(run_and_wait(std::string(OOC_METAD) + " --no-such-option 2> /dev/null") == 1);
  CHECK(run_and_wait(std::string(OOC_METAD) + " --folder " + (folder / "x").string() + " 2> /dev/null") ==
        1);  // without --nodes there is no new store
  std::ofstream(folder / "conf") << "folder = " << (folder / "m").string() << "\nnodes = 3\ncapability-life = 60\n";
  server_process metad(OOC_METAD, {"--config", (folder / "conf").string()}, folder / "log");
  CHECK(run_and_wait(std::string(OOC_METAD) + " --listen 127.0.0.1:0 --folder " + (folder / "m").string() + " 2> " +
                     (folder / "err").string()) == 1);
  std::ifstream in(folder / "err");
  std::string line;
  std::getline(in, line);
  CHECK(says(line, "another metadata server"));
  remote_metadata_options o;
  o.address = metad.address();
  o.client.id = wire::random_client_id();
  CHECK(remote_metadata(o).cluster().nodes.size() == 3);
  CHECK(metad.stop() == 0);
}

TEST_CASE("the reply to one call gives no right that another call would") {
  cluster servers;
  const auto root = servers.client({0, 0});
  const entry made = root->create("mine", plain());
  root->commit(made.id);
  const file_descriptor fd = welcomed(servers);
  const auto asked = [&](const wire::sent_call& c) {
    REQUIRE(send_all(fd, call_frame(wire::encode(c))));
    received_frame f;
    REQUIRE(receive(fd, f));
    return f;
  };
  const received_frame linked = asked({storage::calls::link{made.id, {"mine too"}}, 1});
  CHECK_FALSE(linked.header.flags & wire::frame_header::failed);
  // The number of that call, as if it were one after which the file is gone.
  const received_frame taken = asked({storage::calls::take_over{made.id, made.id, 1}, 1, true});
  REQUIRE(taken.header.flags & wire::frame_header::failed);
  CHECK(wire::decode_failure(taken.body).code == std::error_code(EBUSY, std::generic_category()));
}
