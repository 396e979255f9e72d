// An I/O server with two addresses, of which one is lost.
#include <catch2/catch.hpp>

#include "support/faulty_proxy.hpp"
#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t at_once = 8;         // requests
constexpr std::uint64_t each = 256 << 10;  // bytes
constexpr std::uint64_t sent_at_once = at_once * each;

/// A client of a server with two addresses, each behind a proxy, and a program that writes and
/// reads.
struct two_ways {
  two_ways()
      : server(signer, folder.path(), {"127.0.0.1:0", "127.0.0.2:0"}),
        a(server.addresses()[0]),
        b(server.addresses()[1]),
        node(open_remote_node(client_options({a.address(), b.address()}, 9s))),
        shape(granted(signer, 1, sent_at_once)) {
    REQUIRE_FALSE(create(*node, shape));
  }

  /// Every request of one kind at once; `meanwhile` when they are under way.
  template <class Start>
  void all(Start&& start, const std::function<void()>& meanwhile) {
    std::array<std::promise<failure>, at_once> answers;
    for (std::size_t i = 0; i < at_once; ++i)
      start(i * each, std::make_shared<const request>(request::contiguous(i * each, each)),
            [&p = answers[i]](const failure& f) { p.set_value(f); });
    meanwhile();
    for (auto& p : answers) {
      const failure f = p.get_future().get();
      INFO(f.what);
      CHECK_FALSE(f);
    }
  }

  /// Writes the file anew and reads it.
  void round(
      const std::function<void()>& while_writing = [] {}, const std::function<void()>& while_reading = [] {}) {
    bytes data = pattern(sent_at_once), back(sent_at_once);
    data[0] = static_cast<std::byte>(++rounds);
    all([&](std::size_t at, request_ptr r, completion done) { node->write(shape, 0, r, data.data() + at, done); },
        while_writing);
    all([&](std::size_t at, request_ptr r, completion done) { node->read(shape, 0, r, back.data() + at, done); },
        while_reading);
    CHECK((back == data));
  }

  /// True when both ways have carried some rounds more.
  bool uses_both() {
    const std::uint64_t before_a = a.bytes(), before_b = b.bytes();
    return soon([&] {
      round();
      return a.bytes() >= before_a + 2 * sent_at_once && b.bytes() >= before_b + 2 * sent_at_once;
    });
  }

  const test_signer signer;
  temporary_folder folder;
  running_iod server;
  faulty_proxy a, b;
  std::shared_ptr<io_service> node;
  shape_ptr shape;
  int rounds = 0;
};

}  // namespace

TEST_CASE("two addresses are used at once, one when the other is lost, and both when it is back") {
  two_ways s;
  CHECK(s.uses_both());
  s.round([&] { s.a.cut_off(); });
  const std::uint64_t on_a = s.a.bytes(), on_b = s.b.bytes();
  for (int i = 0; i < 3; ++i) s.round();
  CHECK(s.a.bytes() == on_a);
  CHECK(s.b.bytes() >= on_b + 6 * sent_at_once);
  s.a.restore();
  CHECK(s.uses_both());
  s.round([] {}, [&] { s.b.cut_off(); });
  s.round();
  s.b.restore();
  CHECK(s.uses_both());
}

TEST_CASE("an address that swallows what is sent is given up for the other one, and used again") {
  two_ways s;
  CHECK(s.uses_both());
  s.round([&] { s.b.swallow(); });  // fails where that is given up no sooner than its requests
  const std::uint64_t on_b = s.b.bytes();
  s.round();
  CHECK(s.b.bytes() == on_b);
  s.b.restore();
  CHECK(s.uses_both());
}
