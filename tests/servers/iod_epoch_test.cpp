// A server whose machine loses power, and comes back while its clients live on.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "epoch_file.hpp"
#include "iod/iod_folder.hpp"
#include "support/iod_fixture.hpp"
#include "support/scripted_iod.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;
using wire::frame_header;
using wire::frame_kind;

namespace {

constexpr std::uint64_t length = 64 << 10;

/// A server that can be stopped and comes back at the same place, in the same epoch or in another one.
class node_of_machine {
 public:
  node_of_machine() { start(1); }

  void start(std::uint64_t epoch) {
    iod::iod_options o;
    o.epoch = epoch;
    server_.emplace(signer_, path(), std::vector<std::string>{address()}, o);
  }
  void stop() { server_.reset(); }
  /// The stripe objects of these files stay, and their last writes count as not synced; `gone`: as never made.
  void lose_power(const std::vector<shape_ptr>& files, bool gone = false) {
    stop();
    for (const shape_ptr& f : files) {
      if (!gone) change_boot(path(), f->id);
      if (gone)
        for (const auto& file : node_folder(path()).files(f->id)) fs::remove(file);
    }
    if (gone) change_noted_boot(path());
  }

  std::shared_ptr<io_service> client() const { return open_remote_node(client_options({address()})); }
  /// An opening of the file.
  shape_ptr opened(file_id id) const {
    auto f = std::make_shared<file_shape>(*granted(signer_, id, length));
    f->generation = 1;
    f->opened = next_moment();
    return f;
  }
  const fs::path& path() const { return folder_.path(); }
  std::string address() const { return "unix:" + (sockets_.path() / "s").string(); }

 private:
  test_signer signer_;
  temporary_folder folder_, sockets_;
  std::optional<running_iod> server_;
};

const request whole = request::contiguous(0, length);

/// The outcome of a read of all of it.
failure read_all(io_service& n, const shape_ptr& f, bytes& to) {
  to.assign(length, std::byte{0x55});
  return read(n, f, 0, whole, to.data());
}

bool tells_of_the_loss(const failure& f, const std::string& where = "unix:") {
  return f.code == std::errc::io_error && f.what.find("has lost its power") != f.what.npos &&
         f.what.find("node 0 (" + where) != f.what.npos && f.what.find("open the file again") != f.what.npos;
}

}  // namespace

TEST_CASE("a client whose acknowledged writes went with the power of the node's machine is told so") {
  const bool gone = GENERATE(false, true);
  CAPTURE(gone);
  node_of_machine m;
  const auto client = m.client();
  const auto file = m.opened(1), synced = m.opened(2), only_made = m.opened(3);
  const bytes data(length, std::byte{7});
  for (const auto& f : {file, synced, only_made}) REQUIRE_FALSE(create(*client, f));
  for (const auto& f : {file, synced}) REQUIRE_FALSE(write(*client, f, 0, whole, data.data()));
  REQUIRE_FALSE(sync(*client, synced));
  m.lose_power({file}, gone);
  m.start(2);

  bytes back;
  SECTION("by what it asks for first") {
    const int what = GENERATE(0, 1, 2);
    CAPTURE(what);
    const failure f = what == 0   ? read_all(*client, file, back)
                      : what == 1 ? write(*client, file, 0, whole, data.data())
                                  : sync(*client, file);
    CHECK(tells_of_the_loss(f));
    // And by all that follows.
    CHECK(tells_of_the_loss(sync(*client, file)));
    CHECK(tells_of_the_loss(read_all(*client, file, back)));
    CHECK(tells_of_the_loss(client->epoch_of(*file).lost));
  }
  SECTION("and other files go on") {
    CHECK_FALSE(read_all(*client, synced, back));
    CHECK((back == data));
    CHECK_FALSE(sync(*client, only_made));
    CHECK_FALSE(write(*client, only_made, 0, whole, data.data()));
    CHECK_FALSE(client->epoch_of(*synced).lost);
  }
  SECTION("until the file is opened again") {
    CHECK(tells_of_the_loss(sync(*client, file)));
    const auto again = m.opened(1);
    CHECK_FALSE(write(*client, again, 0, whole, data.data()));
    CHECK_FALSE(sync(*client, again));
    CHECK_FALSE(read_all(*client, again, back));
    CHECK((back == data));
    CHECK(tells_of_the_loss(read_all(*client, file, back)));  // the earlier opening stays what it was
  }
  SECTION("unless it has been removed") {
    if (gone) return;  // then there is nothing to remove
    CHECK_FALSE(wait_for([&](completion done) { client->remove(file, std::move(done)); }));
    CHECK_FALSE(client->epoch_of(*file).lost);
  }
}

TEST_CASE("a client is told nothing where the server was killed and its machine goes on") {
  node_of_machine m;
  const auto client = m.client();
  const auto file = m.opened(1);
  const bytes data(length, std::byte{7});
  bytes back;
  REQUIRE_FALSE(create(*client, file));
  REQUIRE_FALSE(write(*client, file, 0, whole, data.data()));
  m.stop();
  m.start(1);
  CHECK_FALSE(read_all(*client, file, back));
  CHECK((back == data));
  CHECK_FALSE(sync(*client, file));
}

TEST_CASE("a server that says no epoch, of an earlier release or in front of RADOS, is believed") {
  const bool at_first = GENERATE(false, true);
  CAPTURE(at_first);
  node_of_machine m;
  if (at_first) {
    m.stop();
    m.start(0);
  }
  const auto client = m.client();
  const auto file = m.opened(1);
  const bytes data(length, std::byte{7});
  REQUIRE_FALSE(create(*client, file));
  REQUIRE_FALSE(write(*client, file, 0, whole, data.data()));
  m.stop();
  m.start(at_first ? 5 : 0);
  CHECK_FALSE(sync(*client, file));
}

TEST_CASE("a call that waits while the machine is away fails where earlier writes were lost, and else goes on") {
  node_of_machine m;
  const auto client = m.client();
  const auto file = m.opened(1), other = m.opened(2);
  const bytes data(length, std::byte{7}), later(length, std::byte{8});
  for (const auto& f : {file, other}) REQUIRE_FALSE(create(*client, f));
  REQUIRE_FALSE(write(*client, file, 0, whole, data.data()));
  m.lose_power({file});
  const auto begin = [&](const shape_ptr& f) {
    auto p = std::make_shared<std::promise<failure>>();
    client->write(f, 0, std::make_shared<const request>(whole), later.data(),
                  [p](const failure& e) { p->set_value(e); });
    return p->get_future();
  };
  auto of_lost = begin(file), of_other = begin(other);
  CHECK(of_lost.wait_for(0ms) == std::future_status::timeout);
  m.start(2);
  CHECK(tells_of_the_loss(of_lost.get()));
  CHECK_FALSE(of_other.get());
  CHECK_FALSE(sync(*client, other));
}

TEST_CASE("a sync covers what was acknowledged before it was asked for, and no more") {
  std::atomic<std::uint64_t> sync_id{0};
  std::atomic<bool> cut{false};
  std::atomic<std::uint64_t> epoch{1};
  scripted_iod server(
      [&](std::uint32_t, const frame_header& h, const auto& say) {
        if (cut.exchange(false)) return false;
        if (h.kind == frame_kind::sync && sync_id.exchange(h.id) == 0) return true;  // answered below
        if (h.kind != frame_kind::resize) return say(scripted_iod::reply(h));
        frame_header s;
        s.id = sync_id;
        return say(scripted_iod::reply(h)) && say(scripted_iod::reply(s));
      },
      [&] { return epoch.load(); });
  const auto client = open_remote_node(client_options({server.address()}));
  const auto shape = std::make_shared<file_shape>(*make_shape(1, {0, 1, 65536}, 100));
  shape->opened = next_moment();
  auto synced = std::make_shared<std::promise<failure>>();
  client->sync(shape, 0, [synced](const failure& f) { synced->set_value(f); });
  REQUIRE(soon([&] { return sync_id != 0; }));
  CHECK_FALSE(resize(*client, shape, 0, 50));
  CHECK_FALSE(synced->get_future().get());
  CHECK(client->epoch_of(*shape).unsynced_in == 1);
  epoch = 2;
  cut = true;
  CHECK(tells_of_the_loss(sync(*client, shape), server.address()));
}

TEST_CASE("a folder keeps its epoch through the end of its server, and through a planned restart of the machine") {
  temporary_folder folder;
  const fs::path path = folder.path() / "n";
  const auto next_start = [&] { return iod::iod_folder(path, 0).epoch(); };
  const std::uint64_t first = next_start();
  CHECK(first != 0);
  CHECK(next_start() == first);
  pretend_to_restart(path);  // after an orderly end
  CHECK(next_start() == first);

  // Killed: the note that all is synced was taken away by its start.
  take_away_synced(path);
  CHECK(next_start() == first);
  take_away_synced(path);
  pretend_to_restart(path);
  const std::uint64_t after_loss = next_start();
  CHECK(after_loss != first);
  CHECK(next_start() == after_loss);
}

TEST_CASE("a server that runs does not leave the note that all is synced") {
  temporary_folder folder;
  const fs::path path = folder.path() / "n";
  (void)iod::iod_folder(path, 0);
  CHECK(epoch_text(path).ends_with("\nsynced\n"));
  const iod::iod_folder running(path, 0);
  CHECK_FALSE(epoch_text(path).ends_with("\nsynced\n"));
}

TEST_CASE("a folder whose epoch cannot be read gets another one") {
  temporary_folder folder;
  const fs::path path = folder.path() / "n";
  const std::uint64_t first = iod::iod_folder(path, 0).epoch();
  std::ofstream(path / "oocarray-epoch") << "oocarray-epoch 1\nepoch zz\n";
  CHECK(iod::iod_folder(path, 0).epoch() != first);
}
