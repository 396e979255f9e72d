#include "support/faulty_io_service.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "support/memory_io_service.hpp"
#include "support/node_fixture.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

const std::error_code io_failed = std::make_error_code(std::errc::io_error);

struct faulty_node {
  faulty_node() { REQUIRE_FALSE(create(node, shape)); }

  failure put(std::uint64_t at, std::uint64_t n, char c) {
    bytes b(n, static_cast<std::byte>(c));
    return write(node, shape, 0, request::contiguous(at, n), b.data());
  }

  bytes get(std::uint64_t at, std::uint64_t n) {
    bytes b(n);
    CHECK_FALSE(read(node, shape, 0, request::contiguous(at, n), b.data()));
    return b;
  }

  temporary_folder folder;
  shape_ptr shape = make_shape(1, {0, 1, 4096}, 65536);
  faulty_io_service node{open_local_node(folder.path(), {.workers = 2, .staging = 64 << 10})};
};

}  // namespace

TEST_CASE("without rules, calls pass and are counted") {
  faulty_node f;
  CHECK_FALSE(f.put(0, 10, 'a'));
  CHECK(f.get(0, 10) == bytes(10, std::byte{'a'}));
  CHECK(f.node.calls(io_kind::write) == 1);
  CHECK(f.node.calls(io_kind::read) == 1);
  CHECK(f.node.hits(io_kind::write) == 0);
  CHECK(f.node.name() == f.folder.path().string());
}

TEST_CASE("the nth call fails and nothing of it happens") {
  faulty_node f;
  f.node.add({.call = io_kind::write, .nth = 2, .error = io_failed});
  CHECK_FALSE(f.put(0, 10, 'a'));
  CHECK(f.put(0, 10, 'b').code == io_failed);
  CHECK(f.get(0, 10) == bytes(10, std::byte{'a'}));
  CHECK_FALSE(f.put(0, 10, 'c'));
  CHECK(f.node.hits(io_kind::write) == 1);
}

TEST_CASE("a rule is used up after its number of hits") {
  faulty_node f;
  f.node.add({.call = io_kind::sync, .times = 2, .error = io_failed});
  CHECK(sync(f.node, f.shape).code == io_failed);
  CHECK(sync(f.node, f.shape).code == io_failed);
  CHECK_FALSE(sync(f.node, f.shape));
}

TEST_CASE("chance falls the same way for the same seed") {
  const auto pattern = [] {
    faulty_node f;
    f.node.add({.call = io_kind::write, .probability = 0.5, .error = io_failed});
    std::string s;
    for (int i = 0; i < 40; ++i) s += f.put(0, 1, 'a') ? 'x' : '.';
    return s;
  };
  const std::string first = pattern();
  CHECK(first == pattern());
  CHECK(std::count(first.begin(), first.end(), 'x') > 5);
  CHECK(std::count(first.begin(), first.end(), '.') > 5);
}

TEST_CASE("a short write transfers its first regions and then fails") {
  faulty_node f;
  f.node.add({.call = io_kind::write, .times = 1, .error = io_failed, .regions_before_error = 2});
  bytes b(4 * 100, std::byte{'n'});
  CHECK(write(f.node, f.shape, 0, request::strided({0, 0, 100, 4, 10000, 0}), b.data()).code == io_failed);
  CHECK(f.get(10000, 100) == bytes(100, std::byte{'n'}));
  CHECK(f.get(20000, 100) == bytes(100));
}

TEST_CASE("a write may happen in full and be reported as failed") {
  faulty_node f;
  f.node.add({.call = io_kind::write, .times = 1, .error = io_failed, .error_after = true});
  CHECK(f.put(0, 10, 'a').code == io_failed);
  CHECK(f.get(0, 10) == bytes(10, std::byte{'a'}));
}

TEST_CASE("a bit is flipped on its way in or out") {
  faulty_node f;
  f.node.add({.call = io_kind::write, .times = 1, .flip = true});
  CHECK_FALSE(f.put(0, 10, 'a'));
  CHECK(f.get(0, 2) == bytes{std::byte{'a' ^ 0x10}, std::byte{'a'}});
  f.node.add({.call = io_kind::read, .times = 1, .flip = true});
  CHECK(f.get(0, 1) == bytes{std::byte{'a'}});
  CHECK(f.get(0, 1) == bytes{std::byte{'a' ^ 0x10}});
}

TEST_CASE("a delayed call is made when its time has come, and not by its caller") {
  faulty_io_service node(std::make_shared<memory_io_service>());  // which answers where it is called
  const shape_ptr shape = make_shape(1, {0, 1, 4096}, 65536);
  REQUIRE_FALSE(create(node, shape));
  node.add({.call = io_kind::write, .times = 1, .delay = std::chrono::milliseconds(50)});
  const auto start = std::chrono::steady_clock::now();
  std::promise<std::thread::id> p;
  bytes b(10, std::byte{'a'});
  node.write(shape, 0, std::make_shared<const request>(request::contiguous(0, 10)), b.data(), [&](const failure& e) {
    CHECK_FALSE(e);
    p.set_value(std::this_thread::get_id());
  });
  CHECK(p.get_future().get() != std::this_thread::get_id());
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(50));
}

TEST_CASE("calls are held until they are released") {
  faulty_node f;
  f.node.add({.call = io_kind::read, .hold = true});
  std::promise<failure> p;
  bytes b(10);
  f.node.read(f.shape, 0, std::make_shared<const request>(request::contiguous(0, 10)), b.data(),
              [&](const failure& e) { p.set_value(e); });
  auto done = p.get_future();
  CHECK(f.node.held() == 1);
  CHECK(done.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  f.node.release();
  CHECK_FALSE(done.get());
}

TEST_CASE("every other call can fail") {
  faulty_node f;
  for (io_kind c : {io_kind::create, io_kind::resize, io_kind::remove, io_kind::verify, io_kind::list})
    f.node.add({.call = c, .error = io_failed});
  CHECK(create(f.node, make_shape(2, {0, 1, 4096}, 10)).code == io_failed);
  CHECK(resize(f.node, f.shape, 0, 10).code == io_failed);
  CHECK(ooc::testing::remove(f.node, 1).code == io_failed);
  CHECK(verify(f.node, f.shape).first.code == io_failed);
  CHECK(list(f.node).first.code == io_failed);
  f.node.clear();
  CHECK(list(f.node).second == std::vector<file_id>{1});
}
