// Tests of what a client makes of an I/O server that misbehaves: every call ends, within its deadline, with
// an answer or with an error that says what went wrong.
#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <limits>

#include "support/pauses.hpp"
#include "support/scripted_iod.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;
using wire::frame_header;
using wire::frame_kind;

namespace {

using clock_type = std::chrono::steady_clock;

const std::string nonsense = "\xff\xff\xff\xff";  // no message of Protocol Buffers

std::future<failure> start_sync(io_service& node) {
  return started([&](auto done) { node.sync(make_shape(1, {0, 1, 65536}, 100), 0, done); });
}

failure ended(std::future<failure>& f) {
  REQUIRE(f.wait_for(60s) == std::future_status::ready);
  return f.get();
}

std::chrono::duration<double> processor_time() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

long times_asleep() {
  rusage r{};
  ::getrusage(RUSAGE_SELF, &r);
  return r.ru_nvcsw;
}

}  // namespace

TEST_CASE("an answer that cannot be read fails its call, and the connection goes on") {
  scripted_iod server([](std::uint32_t, const frame_header& h, const auto& say) {
    switch (h.kind) {
      case frame_kind::verify:
      case frame_kind::list: return say(scripted_iod::reply(h, nonsense));
      case frame_kind::resize: return say(scripted_iod::reply(h, nonsense, frame_header::last | frame_header::failed));
      default: return say(scripted_iod::reply(h));
    }
  });
  const auto node = open_remote_node(client_options({server.address()}));
  const auto shape = make_shape(1, {0, 1, 65536}, 100);
  auto verified = started([&](auto done) { node->verify(shape, 0, done); });
  auto listed = started([&](auto done) { node->list(done); });
  auto resized = started([&](auto done) { node->resize(shape, 0, 50, done); });
  for (auto [call, name] : {std::pair(&verified, "verification"), {&listed, "list"}, {&resized, "resizing"}}) {
    const failure f = ended(*call);
    CHECK(f.code == std::errc::protocol_error);
    CHECK_THAT(f.what, Catch::Contains("node 0 (" + server.address()) && Catch::Contains(name));
  }
  auto synced = start_sync(*node);
  CHECK_FALSE(ended(synced));
  CHECK(server.connections() == 1);
}

TEST_CASE("a fence whose connection is lost is sent again, and then the call that waits for it") {
  std::atomic<int> fences{0}, syncs{0};
  std::atomic<std::uint32_t> synced_on{0};
  scripted_iod server([&](std::uint32_t number, const frame_header& h, const auto& say) {
    if (h.kind == frame_kind::fence && ++fences <= 2) return false;
    if (h.kind == frame_kind::sync && ++syncs == 1) return false;
    if (h.kind == frame_kind::sync) synced_on = number;
    return say(scripted_iod::reply(h));
  });
  const auto node = open_remote_node(client_options({server.address()}));
  auto synced = start_sync(*node);
  CHECK_FALSE(ended(synced));
  CHECK(syncs == 2);
  CHECK(fences == 3);
  CHECK(synced_on == 4);
}

TEST_CASE("calls that wait for a fence which never succeeds end at their deadline") {
  // The fate of each fence.
  const std::string how = GENERATE("lost", "not answered", "busy for ever");
  CAPTURE(how);
  std::atomic<bool> healthy{false}, begun{false};
  scripted_iod server([&](std::uint32_t, const frame_header& h, const auto& say) {
    if (healthy) return say(scripted_iod::reply(h));
    begun = true;
    if (h.kind != frame_kind::fence || how == "lost") return false;
    while (how == "busy for ever" && !healthy) {
      if (!say(scripted_iod::reply(h, {}, 0))) return false;
      let_pass(100ms);  // as often as that
    }
    return true;
  });
  const auto node = open_remote_node(client_options({server.address()}, 1s));
  auto first = start_sync(*node);
  CHECK(soon([&] { return begun.load(); }));
  auto second = start_sync(*node);
  for (auto* call : {&first, &second}) {
    const failure f = ended(*call);
    CHECK(f.code == std::errc::timed_out);
    CHECK_THAT(f.what, Catch::Contains(server.address()) && Catch::Contains("sync"));
  }
  healthy = true;
  // Where nothing at all came it counts as gone until it is connected again.
  CHECK(soon([&] {
    auto third = start_sync(*node);
    return !ended(third);
  }));
}

TEST_CASE("what is given back of a commit and given up is fenced before anything else is asked") {
  std::atomic<bool> healthy{false}, fenced{false}, synced_before{false};
  scripted_iod server([&](std::uint32_t, const frame_header& h, const auto& say) {
    if (!healthy) return false;
    if (h.kind == frame_kind::fence) fenced = true;
    if (h.kind == frame_kind::sync && !fenced) synced_before = true;
    return say(scripted_iod::reply(h));
  });
  const auto node = open_remote_node(client_options({server.address()}, 1s));
  auto trimmed = started([&](auto done) { node->trim(make_shape(1, {0, 1, 65536}, 100), 0, done); });
  CHECK(ended(trimmed).code == std::errc::timed_out);
  healthy = true;
  CHECK(soon([&] {
    auto synced = start_sync(*node);
    return !ended(synced);
  }));
  CHECK(fenced);
  CHECK_FALSE(synced_before);
}

TEST_CASE("who comes within an outage fails with those who began to wait in it, and later ones at once") {
  std::atomic<bool> deaf{true}, asked{false};
  scripted_iod server([&](std::uint32_t, const frame_header& h, const auto& say) {
    asked = true;
    return deaf || say(scripted_iod::reply(h));
  });
  const auto node = open_remote_node(client_options({server.address()}, 3s));
  auto first = start_sync(*node);
  CHECK(soon([&] { return asked.load(); }));  // it was heard of when it shook hands, and now no more
  let_pass(500ms);                            // so that their deadlines are apart
  auto second = start_sync(*node);
  CHECK_THAT(ended(first).what, Catch::Contains("no answer"));
  const failure f = ended(second);
  CHECK(f.code == std::errc::timed_out);
  CHECK_THAT(f.what, Catch::Contains("given up"));  // before a deadline of its own
  deaf = false;
  CHECK(soon([&] {
    auto again = start_sync(*node);
    return !ended(again);
  }));
}

TEST_CASE("a node that is let go in a completion waits for its other calls without spinning") {
  scripted_iod server([](std::uint32_t, const frame_header& h, const auto& say) {
    return h.kind != frame_kind::list || say(scripted_iod::reply(h));
  });
  auto node = open_remote_node(client_options({server.address()}, 1s));
  auto unanswered = start_sync(*node);
  io_service& n = *node;
  auto listed = started([&, held = std::move(node)](auto done) mutable {
    n.list([done, held = std::move(held)](const failure& f, const auto& ids) mutable {
      held.reset();
      done(f, ids);
    });
  });
  CHECK_FALSE(ended(listed));
  const auto before = processor_time();
  CHECK(ended(unanswered).code == std::errc::timed_out);
  CHECK(processor_time() - before < 300ms);
}

TEST_CASE("a client that has nothing to ask does not wake up, and its next call is answered") {
  const test_signer signer;
  const temporary_folder folder;
  const running_iod server(signer, folder.path());
  std::vector<std::shared_ptr<io_service>> nodes(16);
  for (auto& node : nodes) node = open_remote_node(client_options(server.addresses()));
  const auto list = [&](std::size_t i) {
    auto listed = started([&](auto done) { nodes[i]->list(done); });
    CHECK_FALSE(ended(listed));
  };
  for (std::size_t i = 0; i < 8; ++i) list(i);  // the others have no connection yet
  // The server and this thread wake up; a node each would be too many.  The quietest of some seconds, as
  // a machine that stops and goes on wakes everybody, and so does what was asked last.
  long quietest = std::numeric_limits<long>::max();
  for (int second = 0; second < 6 && quietest >= 32; ++second) {
    const long before = times_asleep();
    let_pass(1s);
    quietest = std::min(quietest, times_asleep() - before);
  }
  CHECK(quietest < 32);
  for (std::size_t i = 0; i < nodes.size(); ++i) list(i);
}

TEST_CASE("the deadline of a call counts from the call, also after a long silence") {
  std::atomic<bool> deaf{false};
  scripted_iod server(
      [&](std::uint32_t, const frame_header& h, const auto& say) { return deaf || say(scripted_iod::reply(h)); });
  const auto node = open_remote_node(client_options({server.address()}, 1s));
  auto first = start_sync(*node);
  CHECK_FALSE(ended(first));
  let_pass(1500ms);  // longer than the deadline
  deaf = true;
  const auto begin = clock_type::now();
  auto second = start_sync(*node);
  CHECK(ended(second).code == std::errc::timed_out);
  CHECK(clock_type::now() - begin >= 1s);
}

TEST_CASE("a request that is called busy after its answer keeps the connection") {
  scripted_iod server([](std::uint32_t, const frame_header& h, const auto& say) {
    return say(scripted_iod::reply(h)) && say(scripted_iod::reply(h, {}, 0));
  });
  const auto node = open_remote_node(client_options({server.address()}));
  for (int i = 0; i < 3; ++i) {
    auto synced = start_sync(*node);
    CHECK_FALSE(ended(synced));
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("a server that is busy with other requests of the connection is waited for") {
  scripted_iod server([](std::uint32_t, const frame_header& h, const auto& say) {
    frame_header all = h;
    all.id = 0;
    for (int i = 0; i < 25; ++i) {
      if (!say(scripted_iod::reply(all, {}, 0))) return false;
      let_pass(100ms);  // together more than the deadline
    }
    return say(scripted_iod::reply(h));
  });
  const auto node = open_remote_node(client_options({server.address()}, 1s));
  auto synced = start_sync(*node);
  const failure f = ended(synced);
  INFO(f.what);
  CHECK_FALSE(f);
  CHECK(server.connections() == 1);
}

TEST_CASE("a list with more entries than a server takes in one message is sent in several") {
  const test_signer signer;
  temporary_folder folder;
  running_iod server(signer, folder.path());
  const auto node = open_remote_node(client_options(server.addresses()));
  constexpr std::uint64_t regions = 150'000, step = 24;
  const auto shape = granted(signer, 1, regions * step);
  REQUIRE_FALSE(create(*node, shape));
  request r;
  for (std::uint64_t i = 0; i < regions; ++i) r.add(i * step, i * 8, 8);
  REQUIRE(r.entries().size() == regions);
  bytes out(regions * 8), in(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 7 + i / 251);
  const failure written = write(*node, shape, 0, r, out.data());
  INFO(written.what);
  REQUIRE_FALSE(written);
  REQUIRE_FALSE(read(*node, shape, 0, r, in.data()));
  CHECK(in == out);
  // Overlapping regions are refused, however far apart they are in the list.
  r.add(0, 0, 8);
  const failure refused = write(*node, shape, 0, r, out.data());
  CHECK(refused);
  in.assign(in.size(), std::byte{0});
  REQUIRE_FALSE(read(*node, shape, 0, request::contiguous(0, 8), in.data()));
  CHECK(std::equal(in.begin(), in.begin() + 8, out.begin()));
}
