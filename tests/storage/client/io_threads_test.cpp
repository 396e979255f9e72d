// How many threads a client of many I/O servers has, and which of them does what.
#include "storage/client/io_threads.hpp"

#include <algorithm>
#include <barrier>
#include <catch2/catch.hpp>
#include <filesystem>
#include <future>
#include <memory>
#include <vector>

#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace std::chrono_literals;

namespace {

constexpr int server_count = 100;

int threads_of_this_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

failure reach(io_service& node) {
  std::promise<failure> answered;
  node.list([&](const failure& f, const std::vector<file_id>&) { answered.set_value(f); });
  return answered.get_future().get();
}

}  // namespace

TEST_CASE("a client of a hundred servers has few threads, and reaches all of them") {
  const test_signer signer;
  temporary_folder folder;
  const running_iod server(signer, folder.path());
  REQUIRE_FALSE(reach(*open_remote_node(client_options(server.addresses()))));
  const int before = threads_of_this_process();
  remote_node_options o = client_options(server.addresses());
  o.threads = std::make_shared<io_threads>();
  std::vector<std::shared_ptr<io_service>> nodes;
  for (int i = 0; i < server_count; ++i) nodes.push_back(open_remote_node(o));
  o.threads.reset();
  for (const auto& node : nodes) REQUIRE_FALSE(reach(*node));
  const int with_all = threads_of_this_process();
  CHECK(with_all - before <= 17);  // one of them for questions, 8 perhaps the server's
  nodes.clear();
  CHECK(soon([&] { return threads_of_this_process() < with_all; }));
}

TEST_CASE("a server that is looked for keeps nobody from the others") {
  const test_signer signer;
  temporary_folder folder;
  const running_iod server(signer, folder.path());
  const auto threads = std::make_shared<io_threads>();
  std::promise<void> asked, go_on;
  remote_node_options lost = client_options({});
  lost.deadline = 100ms;
  lost.threads = threads;
  lost.lookup = [&asked, &go_on, once = false]() mutable {
    if (!std::exchange(once, true)) {
      asked.set_value();
      go_on.get_future().wait();
    }
    return std::vector<std::string>();
  };
  const auto away = open_remote_node(lost);
  auto waits = std::async(std::launch::async, [&] { return reach(*away); });
  asked.get_future().wait();
  remote_node_options o = client_options(server.addresses());
  o.threads = threads;
  // On every thread that there can be.
  for (int i = 0; i < 8; ++i) CHECK_FALSE(reach(*open_remote_node(o)));
  CHECK(waits.get().code == std::errc::timed_out);  // and its own calls are given up in time
  go_on.set_value();
}

TEST_CASE("who lets go of all servers in the answer of one of them waits for nothing") {
  const test_signer signer;
  temporary_folder folder;
  const running_iod server(signer, folder.path());
  remote_node_options o = client_options(server.addresses());
  o.threads = std::make_shared<io_threads>();
  auto nodes = std::make_shared<std::vector<std::shared_ptr<io_service>>>();
  for (int i = 0; i < 12; ++i) nodes->push_back(open_remote_node(o));
  o.threads.reset();
  for (const auto& node : *nodes) REQUIRE_FALSE(reach(*node));
  std::promise<failure> answered;
  io_service& last = *nodes->back();
  last.list([&answered, nodes = std::exchange(nodes, {})](const failure& f, const std::vector<file_id>&) mutable {
    nodes.reset();
    answered.set_value(f);
  });
  CHECK_FALSE(answered.get_future().get());
}

TEST_CASE("who lets go of a server takes with him what is asked where it is") {
  const test_signer signer;
  temporary_folder folder;
  const running_iod server(signer, folder.path());
  for (int i = 0; i < 500; ++i) {
    auto asked = std::make_shared<int>();
    const std::weak_ptr<int> left = asked;
    remote_node_options o = client_options(server.addresses());
    o.lookup = [asked = std::exchange(asked, {})] { return std::vector<std::string>(); };
    auto node = open_remote_node(std::exchange(o, {}));
    if (i % 2 == 0) REQUIRE_FALSE(reach(*node));
    node.reset();
    REQUIRE(left.expired());
  }
}

TEST_CASE("answers on two threads that let go of each other's server wait for nothing") {
  const test_signer signer;
  temporary_folder folder;
  const running_iod server(signer, folder.path());
  remote_node_options o = client_options(server.addresses());
  o.threads = std::make_shared<io_threads>();
  auto one = open_remote_node(o), other = open_remote_node(o);
  o.threads.reset();
  io_service &first = *one, &second = *other;
  std::barrier both(2);
  std::promise<void> ended[2];
  const auto let_go = [&both](std::shared_ptr<io_service> of, std::promise<void>& end) {
    return [&both, &end, of = std::move(of)](const failure&, const std::vector<file_id>&) mutable {
      both.arrive_and_wait();
      of.reset();
      end.set_value();
    };
  };
  first.list(let_go(std::move(other), ended[0]));
  second.list(let_go(std::move(one), ended[1]));
  for (auto& end : ended) CHECK(end.get_future().wait_for(30s) == std::future_status::ready);
}
