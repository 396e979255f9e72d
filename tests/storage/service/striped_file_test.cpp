#include "storage/service/striped_file.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "storage/layout/touched_nodes.hpp"
#include "support/memory_io_service.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::testing;

namespace {

using region_list = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // length, node offset

struct memory_file {
  memory_file(std::size_t node_count, striping s, std::uint64_t size) {
    striped_file::nodes all;
    for (std::size_t i = 0; i < node_count; ++i) {
      nodes.push_back(std::make_shared<memory_io_service>("node" + std::to_string(i)));
      all.push_back(nodes.back());
    }
    file_shape shape;
    shape.id = 7;
    shape.striping = s;
    shape.size = size;
    shape.name = "plate/a";
    file = std::make_unique<striped_file>(std::make_shared<const file_shape>(shape), all);
    throw_if(file->create_objects());
  }

  /// Fills the file with byte i = hash of i.
  void fill() {
    std::vector<std::byte> bytes(file->shape().size);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(i);
    throw_if(file->write(request::contiguous(0, bytes.size()), bytes.data()));
  }
  static std::byte pattern(std::uint64_t i) { return static_cast<std::byte>((i * 0x9E3779B97F4A7C15u) >> 56); }

  /// Reads `r`, checks every byte, and returns the bytes that each node delivered.
  std::vector<std::uint64_t> read_and_count(const request& r) {
    std::vector<io_stats> before;
    for (const auto& n : nodes) before.push_back(n->stats());
    std::vector<std::byte> out(r.memory_end());
    const failure f = file->read(r, out.data());
    INFO(f.what);
    REQUIRE_FALSE(f);
    r.for_each_run([&](std::uint64_t at, std::uint64_t memory, std::uint64_t length) {
      for (std::uint64_t i = 0; i < length; ++i)
        if (out[memory + i] != pattern(at + i)) FAIL("wrong byte at file offset " << at + i);
    });
    std::vector<std::uint64_t> bytes;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const io_stats s = nodes[n]->stats();
      const std::uint64_t got = s.bytes_read - before[n].bytes_read;
      bytes.push_back(got);
      // One message for each node that holds a region, none for the others.
      CHECK(s.read_requests - before[n].read_requests == (got != 0 ? 1 : 0));
    }
    return bytes;
  }

  std::vector<std::shared_ptr<memory_io_service>> nodes;
  std::unique_ptr<striped_file> file;
};

using counts = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("V1: a strided request sends one message to each node") {
  memory_file f(4, {0, 4, 512}, 4000);
  f.fill();
  CHECK(f.read_and_count(request::strided({400, 300, 500, 2, 800, 400})) == counts{364, 612, 476, 248});
}

TEST_CASE("V2: a file of 54000 bytes is dealt out over the nodes") {
  memory_file all(4, {0, 4, 4096}, 54000);
  all.fill();
  CHECK(all.read_and_count(request::contiguous(0, 54000)) == counts{16384, 13040, 12288, 12288});
  for (std::uint32_t t = 0; t < 4; ++t)
    CHECK(all.nodes[t]->object(7).size() == all.file->shape().striping.object_size(t, 54000));

  memory_file two(4, {1, 2, 8000}, 54000);
  two.fill();
  CHECK(two.read_and_count(request::contiguous(0, 54000)) == counts{0, 30000, 24000, 0});
  CHECK(two.nodes[0]->objects().empty());
  CHECK(two.nodes[3]->objects().empty());
}

TEST_CASE("V3: blocks of the paper's matrix") {
  memory_file four(4, {0, 4, 4096}, 54000), two(4, {1, 2, 8000}, 54000);
  four.fill();
  two.fill();
  const auto block = [](std::uint64_t bx, std::uint64_t by) {
    return request::strided({18000 * by + 1000 * bx, 0, 1000, 3, 6000, 0});
  };
  CHECK(four.read_and_count(block(2, 0)) == counts{1000, 192, 808, 1000});
  CHECK(two.read_and_count(block(2, 0)) == counts{0, 1000, 2000, 0});

  CHECK(four.read_and_count(block(2, 1)) == counts{712, 520, 1000, 768});
  CHECK(four.nodes[0]->last_regions() == region_list{{712, 7712}});
  CHECK(four.nodes[1]->last_regions() == region_list{{520, 4096}});
  CHECK(four.nodes[2]->last_regions() == region_list{{1000, 5520}});
  CHECK(four.nodes[3]->last_regions() == region_list{{768, 7424}});
  CHECK(two.read_and_count(block(2, 1)) == counts{0, 2000, 1000, 0});
  CHECK(two.nodes[1]->last_regions() == region_list{{1000, 12000}, {1000, 16000}});
  CHECK(two.nodes[2]->last_regions() == region_list{{1000, 10000}});

  for (const strided_request& r :
       {strided_request{2000, 0, 2000, 3, 6000, 0}, strided_request{2000, 2000, 2000, 2, 6000, 0},
        strided_request{2000, 2000, 2000, 1, 6000, 2000}}) {
    const counts c = four.read_and_count(request::strided(r));
    CHECK(std::accumulate(c.begin(), c.end(), std::uint64_t{0}) == 6000);
  }
}

TEST_CASE("a 512 x 512 tile of doubles on 4 nodes is 4 messages") {
  memory_file f(4, {0, 4, 64 * 1024}, 0);
  nested_request tile;
  tile.file_offset = 512 * 8;
  tile.run = 512 * 8;
  tile.depth = 1;
  tile.levels[0] = {512, 8192 * 8, 512 * 8};
  request r;
  r.add(tile);
  CHECK(touched_stripe_indexes(r, f.file->shape().striping) == std::vector<bool>(4, true));
}

TEST_CASE("a request past the end fails before anything is sent") {
  memory_file f(2, {0, 2, 4096}, 10000);
  std::vector<std::byte> out(20000);
  const failure e = f.file->read(request::contiguous(9999, 2), out.data());
  CHECK(e.code == errc::invalid_request);
  CHECK(e.what.find("plate/a") != std::string::npos);
  CHECK(f.file->write(request::contiguous(10000, 1), out.data()).code == errc::invalid_request);
  for (const auto& n : f.nodes) {
    CHECK(n->stats().read_requests == 0);
    CHECK(n->stats().write_requests == 0);
  }
}

TEST_CASE("an empty request is done at once") {
  memory_file f(2, {0, 2, 4096}, 0);
  CHECK_FALSE(f.file->read(request(), nullptr));
  CHECK_FALSE(f.file->write(request(), nullptr));
  CHECK(f.nodes[0]->stats().read_requests == 0);
}

TEST_CASE("a failure is told with node and file, once, after all nodes have answered") {
  memory_file f(4, {0, 4, 4096}, 40000);
  f.fill();
  f.nodes[2]->fail(io_kind::read, {EIO, std::generic_category()});
  f.nodes[3]->fail(io_kind::read, {ETIMEDOUT, std::generic_category()});
  std::vector<std::byte> out(40000);
  int calls = 0;
  failure result;
  f.file->read(std::make_shared<const request>(request::contiguous(0, 40000)), out.data(), [&](const failure& e) {
    ++calls;
    result = e;
  });
  CHECK(calls == 1);
  // Which of the two comes first depends on where this process begins.
  const bool third = result.code == std::errc::io_error;
  CHECK((third || result.code == std::errc::timed_out));
  CHECK(result.what.find(third ? "node node2" : "node node3") != std::string::npos);
  CHECK(result.what.find("plate/a") != std::string::npos);
  CHECK(result.what.find("injected") != std::string::npos);
  for (const auto& n : f.nodes) CHECK(n->stats().read_requests == 1);
  // Nodes that hold nothing of it are not asked.
  CHECK_FALSE(f.file->read(request::contiguous(0, 8192), out.data()));
}

TEST_CASE("as many clients in a row as there are nodes begin at one each") {
  for (std::size_t nodes = 1; nodes <= 100; ++nodes) {
    INFO(nodes << " nodes");
    std::vector<int> clients(nodes);
    for (std::uint64_t number = 1000; number < 1000 + nodes; ++number)
      ++clients.at(static_cast<std::size_t>(first_of_client(number, nodes)));
    CHECK(std::ranges::count(clients, 1) == static_cast<std::ptrdiff_t>(nodes));
  }
}

TEST_CASE("fewer clients than nodes begin far apart") {
  for (const std::size_t nodes : {16, 24, 32, 36}) {
    for (std::size_t clients = 2; clients <= nodes; ++clients) {
      INFO(clients << " clients, " << nodes << " nodes");
      std::vector<std::ptrdiff_t> firsts;
      for (std::uint64_t number = 0; number < clients; ++number) firsts.push_back(first_of_client(number, nodes));
      std::ranges::sort(firsts);
      std::ptrdiff_t widest = firsts.front() + static_cast<std::ptrdiff_t>(nodes) - firsts.back();
      for (std::size_t i = 1; i < clients; ++i) widest = std::max(widest, firsts[i] - firsts[i - 1]);
      CHECK(widest * clients <= 3 * nodes);
    }
  }
}

TEST_CASE("a long read from many nodes asks groups of them, a short one all at once") {
  constexpr std::uint32_t count = 40;
  constexpr std::uint64_t stripe = 64 << 10, all = std::uint64_t{count} << 20;
  memory_file f(count, {0, count, stripe}, all);
  for (const auto& n : f.nodes) n->hold_reads();
  const auto holds = [](const auto& n) { return n->holds_read(); };
  std::vector<std::byte> out(all);
  const auto read = [&](std::uint64_t bytes, std::ptrdiff_t at_once) {
    int ended = 0;
    f.file->read(std::make_shared<const request>(request::contiguous(0, bytes)), out.data(), [&](const failure& e) {
      CHECK_FALSE(e);
      ++ended;
    });
    for (std::ptrdiff_t left = count; left > 0; --left) {
      CHECK(std::count_if(f.nodes.begin(), f.nodes.end(), holds) == std::min(at_once, left));
      CHECK(ended == 0);
      (*std::find_if(f.nodes.begin(), f.nodes.end(), holds))->answer_read();
    }
    CHECK(ended == 1);
  };
  read(all, 20);
  read(count * stripe, count);
}

TEST_CASE("clients ask the nodes from their own first one on") {
  constexpr std::uint32_t count = 32;
  constexpr std::uint64_t all = std::uint64_t{count} << 20;
  memory_file f(count, {0, count, 64 << 10}, all);
  for (const auto& n : f.nodes) n->hold_reads();
  std::vector<std::byte> out(all);
  for (const std::uint64_t client : {0, 1, 31, 77}) {
    const striped_file mine(f.file->shape_handle(), {f.nodes.begin(), f.nodes.end()}, client);
    mine.read(std::make_shared<const request>(request::contiguous(0, all)), out.data(),
              [](const failure& e) { CHECK_FALSE(e); });
    const auto first = static_cast<std::size_t>(first_of_client(client, count));
    for (std::size_t i = 0; i < count; ++i) {
      INFO("client " << client << ", node " << i << " after its first one");
      CHECK(f.nodes[(first + i) % count]->holds_read() == (i < 16));
    }
    for (std::size_t i = 0; i < count; ++i) f.nodes[(first + i) % count]->answer_read();
  }
}

TEST_CASE("a long read from many nodes that fail ends once, after all have been asked") {
  memory_file f(32, {0, 32, 64 << 10}, std::uint64_t{32} << 20);
  f.fill();
  for (const auto& n : f.nodes) n->fail(io_kind::read, {EIO, std::generic_category()});
  std::vector<std::byte> out(f.file->shape().size);
  CHECK(f.file->read(request::contiguous(0, out.size()), out.data()).code == std::errc::io_error);
  for (const auto& n : f.nodes) CHECK(n->stats().read_requests == 1);
  for (const auto& n : f.nodes) n->heal();
  f.read_and_count(request::contiguous(0, out.size()));
}

TEST_CASE("sync reaches every node of the file and no other") {
  memory_file f(4, {1, 2, 8000}, 54000);
  CHECK_FALSE(f.file->sync());
  CHECK(f.nodes[0]->stats().syncs == 0);
  CHECK(f.nodes[1]->stats().syncs == 1);
  CHECK(f.nodes[2]->stats().syncs == 1);
  f.nodes[2]->fail(io_kind::sync, {EIO, std::generic_category()});
  CHECK(f.file->sync().code == std::errc::io_error);
}

TEST_CASE("shares that are not there count as removed") {
  memory_file f(2, {0, 2, 4096}, 10000);
  CHECK_FALSE(f.file->remove_objects());
  CHECK_FALSE(f.file->remove_objects());
  CHECK(f.nodes[0]->objects().empty());
}

TEST_CASE("the nodes touched are those of the definition, whatever the strides") {
  const std::uint64_t seed = random_seed("touched_stripe_indexes");
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t n) { return random() % (n + 1); };
  for (int round = 0; round < 20000; ++round) {
    const auto nn = static_cast<std::uint32_t>(1 + up_to(6));
    const striping s{static_cast<std::uint32_t>(up_to(3)), nn, 1 + up_to(20)};
    const std::uint64_t period = s.sf * s.nn;
    request r;
    for (std::uint64_t e = 0; e <= up_to(1); ++e) {
      nested_request n;
      n.file_offset = up_to(300);
      n.run = 1 + up_to(up_to(3) == 0 ? 60 : 4);
      n.depth = static_cast<std::uint32_t>(up_to(3));
      for (std::uint32_t l = 0; l < n.depth; ++l) {
        const std::uint64_t step = up_to(4) == 0   ? period * up_to(3)
                                   : up_to(3) == 0 ? period * (1 + up_to(2)) - up_to(std::min<std::uint64_t>(3, period))
                                                   : up_to(100);
        n.levels[l] = {1 + up_to(6), step, 1000};
      }
      r.add(n);
    }
    std::vector<bool> expected(nn, false);
    r.for_each_run([&](std::uint64_t at, std::uint64_t, std::uint64_t length) {
      for (std::uint64_t i = 0; i < length; ++i) expected[static_cast<std::size_t>(s.stripe_index_of(at + i))] = true;
    });
    if (touched_stripe_indexes(r, s) != expected) {
      FAIL("seed " << seed << " round " << round);
    }
  }
}

TEST_CASE("telling which nodes are touched does not count the regions") {
  const striping s{0, 4, 64 * 1024};
  const std::uint64_t period = s.sf * s.nn;
  // To count 2^44 of them would take days, and the time limit of the test ends it.
  for (const std::uint64_t step : {std::uint64_t{16}, period, period + 8, 3 * period - 8, s.sf + 8}) {
    nested_request n;
    n.run = 8;
    n.depth = 2;
    n.levels[0] = {std::uint64_t{1} << 20, period << 8, 0};
    n.levels[1] = {std::uint64_t{1} << 24, step, 8};
    request r;
    r.add(n);
    const auto touched = touched_stripe_indexes(r, s);
    CHECK(touched == (step == period ? std::vector<bool>{true, false, false, false} : std::vector<bool>(4, true)));
  }
}

TEST_CASE("random writes and reads agree with a plain byte vector") {
  const std::uint64_t seed = random_seed("striped_file");
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t n) { return random() % (n + 1); };
  for (int file = 0; file < 20; ++file) {
    const auto node_count = static_cast<std::uint32_t>(1 + up_to(4));
    const auto nn = static_cast<std::uint32_t>(1 + up_to(node_count - 1));
    const std::uint64_t size = 1 + up_to(20000);
    memory_file f(node_count, {static_cast<std::uint32_t>(up_to(node_count - 1)), nn, 1 + up_to(2000)}, size);
    std::vector<std::byte> model(size, std::byte{0});
    for (int op = 0; op < 50; ++op) {
      request r;
      std::uint64_t memory = 0;
      for (std::uint64_t e = 0; e <= up_to(3); ++e) {
        nested_request n;
        n.file_offset = up_to(size - 1);
        n.memory_offset = memory;
        n.run = 1 + up_to(std::min<std::uint64_t>(200, size - n.file_offset - 1));
        n.depth = 1;
        n.levels[0] = {1, n.run + up_to(500), n.run + up_to(3)};
        n.levels[0].count =
            1 + up_to(std::min<std::uint64_t>(10, (size - n.file_offset - n.run) / n.levels[0].file_step));
        memory += n.levels[0].count * n.levels[0].memory_step + n.run;
        r.add(n);
      }
      std::vector<std::byte> buffer(r.memory_end());
      if (up_to(1) == 0) {
        for (std::byte& b : buffer) b = static_cast<std::byte>(random());
        // Overlapping entries of one write have no order between nodes; give them the same bytes.
        r.for_each_run([&](std::uint64_t at, std::uint64_t m, std::uint64_t length) {
          for (std::uint64_t i = 0; i < length; ++i)
            buffer[m + i] = model[at + i] = static_cast<std::byte>((at + i) * 31 + static_cast<std::uint64_t>(op));
        });
        REQUIRE_FALSE(f.file->write(r, buffer.data()));
      } else {
        REQUIRE_FALSE(f.file->read(r, buffer.data()));
        r.for_each_run([&](std::uint64_t at, std::uint64_t m, std::uint64_t length) {
          for (std::uint64_t i = 0; i < length; ++i)
            if (buffer[m + i] != model[at + i]) FAIL("seed " << seed << " file " << file << " op " << op);
        });
      }
    }
  }
}
