#include "storage/client/io_connection.hpp"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/scripted_iod.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;
using wire::frame_header;

namespace {

/// An owner that writes down what its one connection tells it.
class listening_owner final : public io_connection_owner {
 public:
  explicit listening_owner(const std::string& address, std::uint32_t index = 0)
      : options_(client_options({address}, 2s)) {
    options_.index = index;
    connection_ = std::make_unique<io_connection>(context_, *this, 3, address);
    boost::asio::co_spawn(context_, connection_->run(), boost::asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~listening_owner() override {
    on_its_thread([](io_connection& c) { c.stop(); });
    work_.reset();
    thread_.join();
  }

  io_connection& operator*() { return *connection_; }
  template <class F>
  void on_its_thread(F f) {
    boost::asio::post(context_, [this, f] { f(*connection_); });
  }
  void want(bool yes) {
    wanted_ = yes;
    on_its_thread([](io_connection& c) { c.wake(); });
  }
  void send(const std::string& frame) {
    const std::lock_guard lock(mutex_);
    sender_->send({frame, {}, {}});
  }
  /// Why the connection was lost, or could not be made, the last time.
  std::string why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }

  std::atomic<int> ups{0}, downs{0}, frames{0};
  std::atomic<std::uint32_t> number{0};
  std::atomic<bool> of_the_third{true};  ///< all calls named the connection that this is

 private:
  const remote_node_options& options() const noexcept override { return options_; }
  std::uint32_t next_connection() override { return ++numbers_; }
  void connection_up(std::size_t channel, std::uint32_t n, std::shared_ptr<wire::frame_sender> s, bool,
                     std::uint64_t) override {
    {
      const std::lock_guard lock(mutex_);
      sender_ = std::move(s);
    }
    of_the_third = of_the_third && channel == 3;
    number = n;
    ++ups;
  }
  boost::asio::awaitable<void> frame_came(std::size_t channel, wire::frame_reader&, const frame_header&) override {
    of_the_third = of_the_third && channel == 3;
    ++frames;
    co_return;
  }
  void connection_down(std::size_t channel, const std::string& why) override {
    {
      const std::lock_guard lock(mutex_);
      why_ = why;
      sender_.reset();
    }
    of_the_third = of_the_third && channel == 3;
    ++downs;
  }
  bool wants_connection() const override { return wanted_; }

  remote_node_options options_;
  std::atomic<bool> wanted_{false};
  std::uint32_t numbers_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<wire::frame_sender> sender_;
  std::string why_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  std::unique_ptr<io_connection> connection_;
  std::thread thread_;
};

std::string sync_frame(std::uint64_t id) {
  frame_header h;
  h.kind = wire::frame_kind::sync;
  h.id = id;
  return wire::encode_frame(h, "");
}

bool answers(std::uint32_t, const frame_header& h, const scripted_iod::sender& say) {
  return say(scripted_iod::reply(h));
}

}  // namespace

TEST_CASE("a connection is made when somebody wants it, not before, and passes frames on") {
  scripted_iod server(answers);
  listening_owner owner(server.address());
  CHECK(never_within(50ms, [&] { return server.connections() != 0; }));
  owner.want(true);
  REQUIRE(soon([&] { return owner.ups == 1; }));
  for (std::uint64_t id = 1; id <= 3; ++id) owner.send(sync_frame(id));
  CHECK(soon([&] { return owner.frames == 3; }));
  CHECK(owner.downs == 0);
  CHECK(owner.of_the_third);
}

TEST_CASE("a lost connection is told with its reason, and made again under another number") {
  scripted_iod server([](std::uint32_t number, const frame_header& h, const auto& say) {
    return number > 1 && say(scripted_iod::reply(h));
  });
  listening_owner owner(server.address());
  owner.want(true);
  REQUIRE(soon([&] { return owner.ups == 1; }));
  const std::uint32_t first = owner.number;
  owner.send(sync_frame(1));
  REQUIRE(soon([&] { return owner.ups == 2; }));
  CHECK(owner.downs == 1);
  CHECK_FALSE(owner.why().empty());
  CHECK(owner.number != first);
  owner.send(sync_frame(2));
  CHECK(soon([&] { return owner.frames == 1; }));
}

TEST_CASE("a connection that is lost while nobody wants one is made when somebody does") {
  scripted_iod server([](std::uint32_t number, const frame_header& h, const auto& say) {
    return number > 1 && say(scripted_iod::reply(h));
  });
  listening_owner owner(server.address());
  owner.want(true);
  REQUIRE(soon([&] { return owner.ups == 1; }));
  owner.want(false);
  owner.send(sync_frame(1));
  REQUIRE(soon([&] { return owner.downs == 1; }));
  CHECK(never_within(50ms, [&] { return owner.ups != 1; }));
  owner.want(true);
  CHECK(soon([&] { return owner.ups == 2; }));
}

TEST_CASE("a server that is another node of the store is left, and named") {
  scripted_iod server(answers);  // which is node 0
  listening_owner owner(server.address(), 2);
  owner.want(true);
  REQUIRE(soon([&] { return owner.downs > 1; }));  // it goes on trying
  CHECK_THAT(owner.why(), Catch::Contains("node 0 of the store answers there"));
  CHECK(owner.ups == 0);
}

TEST_CASE("an address that nobody has is tried again, and one that it moves to is used") {
  scripted_iod server(answers);
  listening_owner owner("127.0.0.1:1");
  owner.want(true);
  REQUIRE(soon([&] { return owner.downs > 1; }));
  owner.on_its_thread([to = server.address()](io_connection& c) { c.move_to(to); });
  CHECK(soon([&] { return owner.ups == 1; }));
}

TEST_CASE("a server that takes the connection and says nothing is given up in time") {
  const file_descriptor silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in a = loopback("127.0.0.1:0");
  socklen_t n = sizeof a;
  REQUIRE(::bind(silent.get(), reinterpret_cast<sockaddr*>(&a), n) == 0);
  REQUIRE(::listen(silent.get(), 16) == 0);
  REQUIRE(::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&a), &n) == 0);
  listening_owner owner("127.0.0.1:" + std::to_string(ntohs(a.sin_port)));
  owner.want(true);
  const file_descriptor taken(::accept4(silent.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(taken);
  std::atomic<bool> looked{false};
  owner.on_its_thread([&](io_connection& c) {
    c.check(std::chrono::steady_clock::now() + 1s);  // below the deadline of 2 s, if it began just now
    looked = true;
  });
  REQUIRE(soon([&] { return looked.load(); }));
  owner.on_its_thread([](io_connection& c) { c.check(std::chrono::steady_clock::now() + 2s); });
  CHECK(soon([&] { return owner.downs == 1; }));
  CHECK(owner.ups == 0);
}
