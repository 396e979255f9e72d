// Nodes whose servers come late, come back elsewhere, or do not come at all.
#include <catch2/catch.hpp>

#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/raw_connection.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;

namespace {

/// The knowledge that a metadata server would have of a node.
struct registry {
  std::vector<std::string> look() {
    const std::lock_guard lock(mutex);
    ++looks;
    if (!refusal.empty()) throw server_refused({ENXIO, std::generic_category()}, refusal);
    if (!trouble.empty()) throw io_error({ETIMEDOUT, std::generic_category()}, trouble);
    return addresses;
  }
  void set(std::vector<std::string> a) {
    const std::lock_guard lock(mutex);
    addresses = std::move(a);
    trouble.clear();
    refusal.clear();
  }

  std::mutex mutex;
  std::vector<std::string> addresses;
  std::string trouble, refusal;
  std::atomic<int> looks{0};
};

std::shared_ptr<io_service> node_in(registry& r, std::chrono::milliseconds deadline = 20s,
                                    std::vector<std::string> addresses = {}) {
  remote_node_options o = client_options(std::move(addresses), deadline);
  o.lookup = [&r] { return r.look(); };
  return open_remote_node(o);
}

/// A program at this address that takes connections and says nothing.
file_descriptor silent_listener(const std::string& address) {
  file_descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const sockaddr_in a = loopback(address);
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0 || ::listen(fd.get(), 8) != 0)
    throw std::runtime_error("cannot listen at " + address);
  return fd;
}

}  // namespace

TEST_CASE("requests wait for a server that comes late, and it is not asked for before the first") {
  const test_signer signer;
  temporary_folder folder;
  registry r;
  const auto node = node_in(r);
  CHECK(node->name() == "node 0");
  CHECK(node->stats().read_requests == 0);
  CHECK(never_within(100ms, [&] { return r.looks != 0; }));

  const auto shape = granted(signer, 1, 1 << 20);
  auto made = std::async(std::launch::async, [&] { return create(*node, shape); });
  REQUIRE(soon([&] { return r.looks > 1; }));  // it was told of none, and asks again
  CHECK(made.wait_for(0ms) == std::future_status::timeout);
  running_iod server(signer, folder.path());
  r.set(server.addresses());
  CHECK_FALSE(made.get());
  CHECK_THAT(node->name(), Catch::Contains(server.addresses()[0]));

  const bytes data = pattern(1 << 20);
  bytes back(data.size());
  CHECK_FALSE(write(*node, shape, 0, request::contiguous(0, data.size()), data.data()));
  CHECK_FALSE(sync(*node, shape));
  CHECK_FALSE(read(*node, shape, 0, request::contiguous(0, data.size()), back.data()));
  CHECK((back == data));
  CHECK_FALSE(resize(*node, granted(signer, 1, 2 << 20), 0, 1 << 20));
  CHECK(verify(*node, granted(signer, 1, 2 << 20)).second.chunks == 256);
  CHECK(list(*node).second == std::vector<file_id>{1});
  CHECK(node->stats().read_requests == 1);
  CHECK_FALSE(wait_for([&](completion done) { node->remove(shape, std::move(done)); }));
}

TEST_CASE("requests for a server that does not come fail at their deadline, and say which it is") {
  const test_signer signer;
  temporary_folder folder;
  registry r;
  r.trouble = "the metadata server is away";
  const auto node = node_in(r, 300ms);
  const auto shape = granted(signer, 1, 1 << 20);
  const auto [failed, report] = verify(*node, shape);
  CHECK(failed.code == std::errc::timed_out);
  CHECK_THAT(failed.what,
             Catch::Contains("node 0: ") && Catch::Contains("0.3 s") && Catch::Contains("the metadata server is away"));
  // The verdict is there: nobody begins to wait anew.
  const failure later = list(*node).first;
  CHECK(later.code == std::errc::timed_out);
  CHECK_THAT(later.what, Catch::Contains("given up"));
  // An address that comes later than that is used all the same.
  running_iod server(signer, folder.path());
  r.set(server.addresses());
  CHECK(soon([&] { return !create(*node, shape); }));
}

TEST_CASE("requests for a node whose server is refused fail at once and say why, and go on when it is back") {
  const test_signer signer;
  temporary_folder folder;
  registry r;
  r.refusal = "its folder is new";
  const auto node = node_in(r, 600s);
  const auto shape = granted(signer, 1, 1 << 20);
  for (int i = 0; i < 2; ++i)
    CHECK_THAT(create(*node, shape).what, Catch::Contains("node 0") && Catch::Contains("its folder is new"));
  running_iod server(signer, folder.path());
  r.set(server.addresses());
  REQUIRE(soon([&] { return !create(*node, shape); }));
}

TEST_CASE("a node that never came can be let go, also by the completion of a failed request") {
  registry r;
  node_in(r).reset();
  auto node = node_in(r, 200ms);
  std::promise<failure> p;
  io_service& n = *node;
  n.sync(make_shape(1, {0, 1, 65536}, 100), 0, [&p, held = std::move(node)](const failure& f) mutable {
    held.reset();
    p.set_value(f);
  });
  CHECK(p.get_future().get().code == std::errc::timed_out);
}

TEST_CASE("a server that comes back at other addresses is found there") {
  const test_signer signer;
  temporary_folder folder;
  registry r;
  auto server = std::make_unique<running_iod>(signer, folder.path());
  const std::string old = server->addresses()[0];
  r.set(server->addresses());
  const auto node = node_in(r, 20s, server->addresses());
  const auto shape = granted(signer, 1, 1 << 20);
  CHECK_FALSE(create(*node, shape));
  const bytes data = pattern(1 << 20);
  CHECK_FALSE(write(*node, shape, 0, request::contiguous(0, data.size()), data.data()));
  CHECK(r.looks == 0);
  server.reset();
  const file_descriptor another = silent_listener(old);
  bytes back(data.size());
  auto read_back = std::async(std::launch::async,
                              [&] { return read(*node, shape, 0, request::contiguous(0, back.size()), back.data()); });
  REQUIRE(soon([&] { return r.looks > 0; }));
  CHECK(read_back.wait_for(0ms) == std::future_status::timeout);
  server = std::make_unique<running_iod>(signer, folder.path(), std::vector<std::string>{"127.0.0.1:0", "127.0.0.2:0"});
  r.set(server->addresses());
  CHECK_FALSE(read_back.get());
  CHECK((back == data));
  CHECK_THAT(node->name(), Catch::Contains(server->addresses()[0]));
  // One address less again.
  server.reset();
  server = std::make_unique<running_iod>(signer, folder.path());
  r.set(server->addresses());
  CHECK_FALSE(sync(*node, shape));
}
