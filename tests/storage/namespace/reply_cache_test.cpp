#include "storage/namespace/reply_cache.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>

#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::storage;

namespace {

struct cached_replies {
  cached_replies() { open(); }
  /// As a server that is started again.
  void open() {
    c.reset();
    const bool there = std::filesystem::exists(folder / "replies");
    c.emplace(folder / "replies", there ? sqlite::open_as::existing : sqlite::open_as::fresh);
    make_reply_cache(*c);
  }

  testing::temporary_folder folder;
  std::optional<sqlite::connection> c;
};

constexpr client_key one{1, 2, 3}, other{1, 2, 4};

}  // namespace

TEST_CASE("the reply to a client's last call is there again after a restart of the server") {
  cached_replies r;
  const std::string reply("any \0 bytes", 11);
  keep_reply(*r.c, {one, 7}, reply);
  r.open();
  CHECK(kept_reply(*r.c, {one, 7}) == reply);
}

TEST_CASE("only the very call that was done is answered") {
  cached_replies r;
  keep_reply(*r.c, {one, 7}, "reply");
  CHECK_FALSE(kept_reply(*r.c, {one, 6}));
  CHECK_FALSE(kept_reply(*r.c, {one, 8}));
  CHECK_FALSE(kept_reply(*r.c, {other, 7}));
  keep_reply(*r.c, {one, 8}, "");
  CHECK_FALSE(kept_reply(*r.c, {one, 7}));  // the client has gone on
  CHECK(kept_reply(*r.c, {one, 8}) == "");
}

TEST_CASE("a reply whose change was not committed is not kept") {
  cached_replies r;
  keep_reply(*r.c, {one, 1}, "reply");
  {
    const sqlite::transaction undone(*r.c, sqlite::transaction_kind::write);
    keep_reply(*r.c, {one, 2}, "reply");
  }
  CHECK(kept_reply(*r.c, {one, 1}));
  CHECK_FALSE(kept_reply(*r.c, {one, 2}));
}

TEST_CASE("clients are listed until they are forgotten, each by itself") {
  cached_replies r;
  keep_reply(*r.c, {one, 1}, "");
  keep_reply(*r.c, {other, 1}, "");
  CHECK(logged_clients(*r.c) == std::vector<client_key>{one, other});
  forget_calls(*r.c, one);
  CHECK(logged_clients(*r.c) == std::vector<client_key>{other});
  CHECK_FALSE(kept_reply(*r.c, {one, 1}));
  CHECK(kept_reply(*r.c, {other, 1}));
}

TEST_CASE("the last call of a lost client is kept as long as any client may try, and longer where it has come back") {
  cached_replies r;
  bool back = false;
  const auto alive = [&](const client_key& c) { return back && c == one; };
  keep_reply(*r.c, {one, 1}, "");
  keep_reply(*r.c, {other, 1}, "");
  lose_client(*r.c, one, std::chrono::seconds(1000), alive);
  r.open();
  CHECK(logged_clients(*r.c) == std::vector<client_key>{other});
  lose_client(*r.c, other, std::chrono::hours(24), alive);
  CHECK(kept_reply(*r.c, {one, 1}));
  back = GENERATE(false, true);
  lose_client(*r.c, other, std::chrono::hours(26), alive);
  CHECK(kept_reply(*r.c, {one, 1}).has_value() == back);
  CHECK(kept_reply(*r.c, {other, 1}));
}

TEST_CASE("a client that makes a file is told from a process of this machine, and never alive here") {
  client_key k;
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<std::uint8_t>(i * 17);
  const process_identity maker = maker_identity(k);
  CHECK(client_of(maker) == k);
  CHECK_FALSE(may_be_alive(maker));
  CHECK_FALSE(client_of(this_process()));
  process_identity cut = maker;
  cut.pid_space.pop_back();
  CHECK_FALSE(client_of(cut));
}
