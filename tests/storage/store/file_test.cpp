#include "oocarray/file.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <future>
#include <random>
#include <thread>

#include "storage/layout/partition_view.hpp"
#include "support/memory_store.hpp"
#include "support/random_seed.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

std::vector<std::byte> numbered(std::size_t n, std::size_t from = 0) {
  std::vector<std::byte> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::byte>((from + i) * 7 + (from + i) / 256);
  return v;
}

std::error_code code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    return e.code();
  }
  return {};
}

std::uint64_t messages(const memory_store& s) {
  std::uint64_t n = 0;
  for (const auto& node : s.nodes) n += node->stats().read_requests + node->stats().write_requests;
  return n;
}

}  // namespace

TEST_CASE("a file reads what was written and ends where it ends") {
  memory_store s(3);
  file f = file::create(s.handle(), "a", {.striping = {0, 0, 512}});
  CHECK(f.size() == 0);
  f.write(numbered(1000));
  f.write(numbered(1000, 1000));
  CHECK(f.tell() == 2000);
  CHECK(f.size() == 2000);
  CHECK(f.seek(-500, seek_from::end) == 1500);
  std::vector<std::byte> out(1000);
  CHECK(f.read(out) == 500);
  out.resize(500);
  CHECK(out == numbered(500, 1500));
  CHECK(f.read(out) == 0);
  CHECK(f.seek(5000) == 5000);
  CHECK(f.read(out) == 0);
  CHECK(f.read_at(1900, out) == 100);
  CHECK(f.tell() == 5000);
  CHECK(code_of([&] { f.seek(-5001, seek_from::current); }) == errc::invalid_request);
  CHECK(code_of([&] { f.seek(std::numeric_limits<std::int64_t>::max(), seek_from::current); }) ==
        errc::invalid_request);

  file again = file::open(s.handle(), "a");
  out.resize(2000);
  CHECK(again.read(out) == 2000);
  CHECK(out == numbered(2000));
}

TEST_CASE("a gap left by a write past the end reads as the fill value") {
  memory_store s(2);
  file f = file::create(s.handle(), "a", {.striping = {0, 0, 100}, .fill = {std::byte{1}, std::byte{2}, std::byte{3}}});
  f.write_at(1000, numbered(10));
  CHECK(f.size() == 1010);
  std::vector<std::byte> out(1000);
  CHECK(f.read_at(0, out) == 1000);
  for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(out[i] == static_cast<std::byte>(i % 3 + 1));
}

TEST_CASE("truncate cuts off and grows") {
  memory_store s(2);
  file f = file::create(s.handle(), "a", {.striping = {0, 0, 100}});
  f.write(numbered(1000));
  f.truncate(450);
  CHECK(f.size() == 450);
  f.truncate(1000);
  std::vector<std::byte> out(1000);
  CHECK(f.read_at(0, out) == 1000);
  auto expected = numbered(1000);
  std::fill(expected.begin() + 450, expected.end(), std::byte{0});
  CHECK(out == expected);
  CHECK(code_of([&] { f.truncate(std::uint64_t{1} << 63); }) == errc::invalid_request);
}

TEST_CASE("V1: the papers' request and the view of the same bytes are one message per node") {
  memory_store s(4);
  file f = file::create(s.handle(), "a", {.size = 4000, .striping = {0, 4, 512}});
  f.write_at(0, numbered(4000));
  const auto before = messages(s);
  std::vector<std::byte> strided(1700), viewed(1700), expected;
  f.read(strided_request{400, 300, 500, 2, 800, 400}, strided);
  CHECK(messages(s) - before == 4);
  for (const auto& [at, length] :
       {std::pair<std::size_t, std::size_t>{400, 300}, {1000, 500}, {1800, 500}, {2600, 400}}) {
    const auto region = numbered(length, at);
    expected.insert(expected.end(), region.begin(), region.end());
  }
  CHECK(strided == expected);

  f.set_view({200, 500, 800});
  CHECK(f.seek(200) == 200);
  CHECK(f.read(viewed) == 1700);
  CHECK(f.tell() == 1900);
  CHECK(viewed == expected);
  CHECK(messages(s) - before == 8);

  for (std::byte& b : viewed) b = ~b;
  f.seek(200);
  f.write(viewed);
  CHECK(messages(s) - before == 12);
  f.read(strided_request{400, 300, 500, 2, 800, 400}, strided);
  CHECK(strided == viewed);
  CHECK(f.view() == partition{200, 500, 800});
  f.clear_view();
  CHECK_FALSE(f.view());
}

TEST_CASE("a view ends where the file ends") {
  CHECK(storage::view_size({200, 500, 800}, 200) == 0);
  CHECK(storage::view_size({200, 500, 800}, 300) == 100);
  CHECK(storage::view_size({200, 500, 800}, 900) == 500);
  CHECK(storage::view_size({200, 500, 800}, 1001) == 501);

  memory_store s(2);
  file f = file::create(s.handle(), "a", {.striping = {0, 0, 64}});
  f.write(numbered(1000));
  f.set_view({10, 5, 20});
  std::vector<std::byte> out(1000);
  const std::size_t n = f.read(out);
  CHECK(n == storage::view_size({10, 5, 20}, 1000));
  CHECK(f.read(out) == 0);
  CHECK(f.seek(0, seek_from::end) == n);
  f.write(numbered(7));  // grows the file
  CHECK(f.size() == 10 + n / 5 * 20 + 20 + 2);
  CHECK(code_of([&] { f.set_view({0, 0, 5}); }) == errc::invalid_request);
  CHECK(code_of([&] { f.set_view({0, 6, 5}); }) == errc::invalid_request);
}

TEST_CASE("nested and list requests") {
  memory_store s(3);
  file f = file::create(s.handle(), "a", {.size = 10000, .striping = {0, 0, 128}});
  f.write_at(0, numbered(10000));
  nested_request n;
  n.file_offset = 100;
  n.run = 8;
  n.depth = 2;
  n.levels[0] = {4, 1000, 80};
  n.levels[1] = {10, 50, 8};
  std::vector<std::byte> out(320);
  f.read(n, out);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 10; ++j)
      for (std::size_t b = 0; b < 8; ++b)
        REQUIRE(out[i * 80 + j * 8 + b] == numbered(1, 100 + i * 1000 + j * 50 + b)[0]);
  CHECK(code_of([&] { f.read(n, std::span(out).first(319)); }) == errc::invalid_request);

  request list;
  list.add(9990, 0, 10);
  list.add(0, 10, 10);
  f.read(list, out);
  CHECK(std::vector(out.begin(), out.begin() + 10) == numbered(10, 9990));
  list.add(9999, 20, 2);
  CHECK(code_of([&] { f.read(list, out); }) == errc::invalid_request);
  f.write(list, out);
  CHECK(f.size() == 10001);
}

TEST_CASE("requests that overflow are refused") {
  memory_store s(2);
  file f = file::create(s.handle(), "a", {.size = 100});
  std::vector<std::byte> b(100);
  constexpr std::uint64_t max = std::numeric_limits<std::int64_t>::max();
  CHECK(code_of([&] { f.write_at(max - 10, b); }) == errc::invalid_request);
  CHECK(code_of([&] { f.write_at(std::numeric_limits<std::uint64_t>::max(), b); }) == errc::invalid_request);
  CHECK(f.read_at(max, b) == 0);
  CHECK(f.read_at(std::numeric_limits<std::uint64_t>::max(), b) == 0);
  CHECK(code_of([&] { f.read(strided_request{0, 0, 10, max, 10, 0}, b); }) == errc::invalid_request);
  f.set_view({0, 1, max});
  f.seek(3);
  CHECK(code_of([&] { f.write(b); }) == errc::invalid_request);
  CHECK(f.size() == 100);
}

TEST_CASE("a file on more nodes than the store has is refused, however many they are") {
  memory_store s(2);
  for (const std::uint32_t nn : {3U, 4'000'000'000U}) {
    CHECK(code_of([&] { file::create(s.handle(), "a", {.striping = {0, nn, 0}}); }) == errc::invalid_request);
    CHECK(code_of([&] { file::create(s.handle(), "a", {.striping = {0, nn, 512}}); }) == errc::invalid_request);
  }
}

TEST_CASE("files are refused to those who may not") {
  memory_store s(1);
  file f = file::create(s.handle(), "a", {.size = 10});
  std::vector<std::byte> b(10);
  file reader = file::open(s.handle(), "a");
  CHECK(code_of([&] { reader.write(b); }).value() == EBADF);
  CHECK(code_of([&] { reader.truncate(1); }).value() == EBADF);
  CHECK(code_of([&] { file::create(s.handle(), "a"); }).value() == EEXIST);
  CHECK(code_of([&] { file::open(s.handle(), "b"); }).value() == ENOENT);
  CHECK(code_of([&] { file::open(s.handle(), ""); }).value() == EISDIR);
  CHECK(code_of([&] { file::create(s.handle(), "c", {.striping = {3, 0, 0}}); }) == errc::invalid_request);
  CHECK(code_of([&] { file::create(s.handle(), "c", {.striping = {0, 2, 0}}); }) == errc::invalid_request);
}

TEST_CASE("a closed file says so") {
  memory_store s(1);
  file f = file::create(s.handle(), "a", {.size = 10});
  f.close();
  CHECK_FALSE(f.is_open());
  CHECK(code_of([&] { f.close(); }) == errc::closed);
  CHECK(code_of([&] { f.size(); }) == errc::closed);
  file g = file::open(s.handle(), "a");
  file h = std::move(g);
  CHECK(h.size() == 10);
  CHECK(code_of([&] { g.tell(); }) == errc::closed);  // NOLINT: moved-from on purpose
}

TEST_CASE("a failed write names file, node and cause and leaves the file usable") {
  memory_store s(2);
  file f = file::create(s.handle(), "a", {.size = 1000, .striping = {0, 0, 100}});
  s.nodes[1]->fail(io_kind::write, {EIO, std::generic_category()});
  try {
    f.write_at(0, numbered(1000));
    FAIL("written");
  } catch (const io_error& e) {
    CHECK(e.code() == std::errc::io_error);
    for (const char* part : {"'a'", "memory1", "injected"})
      CHECK(std::string(e.what()).find(part) != std::string::npos);
  }
  s.nodes[1]->heal();
  f.write_at(0, numbered(1000));
  s.nodes[0]->fail(io_kind::sync, {EIO, std::generic_category()});
  CHECK(code_of([&] { f.sync(); }) == std::errc::io_error);
  s.nodes[0]->heal();
  f.sync();
}

TEST_CASE("growth that finds the disk full changes nothing") {
  memory_store s(2);
  file f = file::create(s.handle(), "a", {.size = 1000, .striping = {0, 0, 100}});
  s.nodes[1]->set_capacity(100);
  std::vector<std::byte> b(10);
  CHECK(code_of([&] { f.write_at(5000, b); }).value() == ENOSPC);
  CHECK(f.size() == 1000);
  f.write_at(0, b);
}

TEST_CASE("the file of an array does not grow by bytes") {
  memory_store s(1);
  storage::new_file n;
  n.size = 80;
  n.striping = {0, 1, 4096};
  n.array = {"f8", 8, {10}, {}, {}, {}};
  s.core->create("a", n);
  file f = file::open(s.handle(), "a", file_access::read_write);
  std::vector<std::byte> b(10);
  f.write_at(70, b);
  CHECK(code_of([&] { f.write_at(75, b); }) == errc::invalid_request);
  CHECK(code_of([&] { f.truncate(8); }) == errc::invalid_request);
}

TEST_CASE("of several that grow a file at once none cuts off another") {
  memory_store s(2);
  file::create(s.handle(), "a", {.striping = {0, 0, 64}});
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      file f = file::open(s.handle(), "a", file_access::read_write);
      for (std::size_t i = 0; i < 20; ++i) f.write_at((i * 4 + t) * 10, numbered(10, (i * 4 + t) * 10));
    });
  for (auto& t : threads) t.join();
  file f = file::open(s.handle(), "a");
  CHECK(f.size() == 800);
  std::vector<std::byte> out(800);
  CHECK(f.read(out) == 800);
  CHECK(out == numbered(800));
}

TEST_CASE("random operations agree with a plain byte vector") {
  const std::uint64_t seed = random_seed("file");
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t n) { return random() % (n + 1); };
  memory_store s(4);
  for (int round = 0; round < 10; ++round) {
    const std::string name = "f" + std::to_string(round);
    file f = file::create(
        s.handle(), name,
        {.size = up_to(3000),
         .striping = {static_cast<std::uint32_t>(up_to(3)), static_cast<std::uint32_t>(up_to(4)), 1 + up_to(700)}});
    std::vector<std::byte> model(f.size(), std::byte{0});
    std::uint64_t position = 0;
    std::optional<partition> view;
    const auto file_offset = [&](std::uint64_t p) {
      return view ? view->offset + p / view->gsize * view->stride + p % view->gsize : p;
    };
    for (int op = 0; op < 150; ++op) {
      INFO("seed " << seed << " round " << round << " op " << op);
      std::vector<std::byte> b(up_to(400));
      switch (up_to(7)) {
        case 0:
        case 1: {
          for (std::byte& x : b) x = static_cast<std::byte>(random());
          f.write(b);
          for (const std::byte x : b) {
            const std::uint64_t at = file_offset(position++);
            if (at >= model.size()) model.resize(at + 1, std::byte{0});
            model[at] = x;
          }
          break;
        }
        case 2:
        case 3: {
          const std::size_t n = f.read(b);
          std::size_t expected = 0;
          while (expected < b.size() && file_offset(position + expected) < model.size()) ++expected;
          REQUIRE(n == expected);
          for (std::size_t i = 0; i < n; ++i) REQUIRE(b[i] == model[file_offset(position + i)]);
          position += n;
          break;
        }
        case 4: {
          position = up_to(view ? 500 : 4000);
          f.seek(static_cast<std::int64_t>(position));
          break;
        }
        case 5: {
          const std::uint64_t size = up_to(4000);
          f.truncate(size);
          model.resize(size, std::byte{0});
          break;
        }
        case 6: {
          if (up_to(1) == 0) {
            view.reset();
            f.clear_view();
          } else {
            view = partition{up_to(200), 1 + up_to(50), 0};
            view->stride = view->gsize + up_to(20);
            f.set_view(*view);
          }
          position = 0;
          break;
        }
        default: {
          if (up_to(3) == 0) f = file::open(s.handle(), name, file_access::read_write), position = 0, view.reset();
          REQUIRE(f.size() == model.size());
          std::vector<std::byte> all(model.size());
          REQUIRE(f.read_at(0, all) == model.size());
          REQUIRE(all == model);
        }
      }
    }
  }
}

TEST_CASE("sync reaches the nodes to which others have made the file longer") {
  memory_store s(2);
  file f = file::create(s.handle(), "a", {.striping = {0, 0, 4096}});
  f.write(numbered(100));
  file other = file::open(s.handle(), "a");
  f.write_at(4096, numbered(100));
  CHECK(s.nodes[1]->stats().syncs == 0);
  other.sync();
  CHECK(s.nodes[0]->stats().syncs == 1);
  CHECK(s.nodes[1]->stats().syncs == 1);
}

namespace {

/// Metadata whose answer to one find(), that of the thread that says so, is late.
class late_metadata final : public local_metadata {
 public:
  using local_metadata::local_metadata;
  metadata_answer answer(const metadata_call& call) override {
    metadata_answer a = local_metadata::answer(call);
    if (late_here && std::holds_alternative<calls::find>(call)) {
      waits = true;
      soon([&] { return go_on.load(); });
    }
    return a;
  }

  static inline thread_local bool late_here = false;
  std::atomic<bool> waits{false}, go_on{false};
};

}  // namespace

TEST_CASE("a size that is asked for while another thread cuts the file does not bring the old one back") {
  memory_store s(1);
  const auto metadata = std::make_shared<late_metadata>(s.database(), "test", credentials{::geteuid(), ::getegid()});
  const store handle(std::make_shared<store_core>("memory:", "late", metadata, striped_file::nodes{s.nodes[0]}));
  file f = file::create(handle, "a", {.size = 4096, .striping = {0, 0, 4096}});
  auto size = std::async(std::launch::async, [&] {
    late_metadata::late_here = true;
    return f.size();
  });
  REQUIRE(soon([&] { return metadata->waits.load(); }));
  f.truncate(0);
  metadata->go_on = true;
  size.get();
  f.write_at(0, numbered(100));
  CHECK(f.size() == 100);
  std::vector<std::byte> out(100);
  CHECK(f.read_at(0, out) == 100);
  CHECK(out == numbered(100));
}

TEST_CASE("who asks for the size after another program has cut the file makes it longer again by writing") {
  memory_store s(1);
  file f = file::create(s.handle(), "a", {.striping = {0, 0, 4096}});
  f.write(numbered(1000));
  file other = file::open(s.handle(), "a", file_access::read_write);
  other.truncate(10);
  CHECK(f.size() == 10);
  f.write_at(500, numbered(100));
  CHECK(other.size() == 600);
  std::vector<std::byte> out(100);
  CHECK(other.read_at(500, out) == 100);
  CHECK(out == numbered(100));
}
