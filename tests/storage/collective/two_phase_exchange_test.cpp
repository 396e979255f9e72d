// The exchange between ranks by itself: ranks are threads, nodes are in memory.
#include "storage/collective/two_phase_exchange.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "support/faulty_io_service.hpp"
#include "support/forwarded_node.hpp"
#include "support/memory_io_service.hpp"
#include "support/random_requests.hpp"
#include "support/random_seed.hpp"
#include "support/thread_group.hpp"

using namespace ooc;
using namespace ooc::storage;
using testing::between;
using testing::thread_group;

namespace {

using bytes = std::vector<std::byte>;

/// A file of which each rank has its own view, through nodes of its own that can be made to fail.
struct file_of_ranks {
  file_of_ranks(std::uint64_t size, std::uint64_t ranks, std::uint64_t sf = 8192) {
    auto s = std::make_shared<file_shape>();
    s->id = 1;
    s->striping = {.sn = 0, .nn = static_cast<std::uint32_t>(nodes.size()), .sf = sf};
    s->size = size;
    s->name = "shared";
    shape = s;
    REQUIRE_FALSE(striped_file(shape, {nodes.begin(), nodes.end()}).create_objects());
    for (std::uint64_t r = 0; r < ranks; ++r) {
      faulty.emplace_back();
      for (const auto& n : nodes) faulty.back().push_back(std::make_shared<faulty_io_service>(n));
      seen_by.push_back(
          std::make_unique<striped_file>(shape, striped_file::nodes(faulty.back().begin(), faulty.back().end())));
    }
  }

  bytes contents() const {
    bytes all(shape->size);
    CHECK_FALSE(seen_by.front()->read(request::contiguous(0, all.size()), all.data()));
    return all;
  }
  std::uint64_t bytes_written() const {
    std::uint64_t n = 0;
    for (const auto& node : nodes) n += node->stats().bytes_written;
    return n;
  }

  std::vector<std::shared_ptr<testing::memory_io_service>> nodes{
      std::make_shared<testing::memory_io_service>("first"), std::make_shared<testing::memory_io_service>("second")};
  shape_ptr shape;
  std::vector<std::vector<std::shared_ptr<faulty_io_service>>> faulty;  ///< of each rank
  std::vector<std::unique_ptr<striped_file>> seen_by;
};

/// The outcome of every rank's transfer.
std::vector<failure> transfer(thread_group& all, const file_of_ranks& f, access_kind kind,
                              std::span<const request> wanted, std::vector<bytes>& memory, const exchange_plan& plan) {
  std::vector<failure> outcome(wanted.size());
  all.run([&](process_group& g) {
    const auto me = static_cast<std::size_t>(g.rank());
    outcome[me] = two_phase_transfer(*f.seen_by[me],
                                     {.group = g,
                                      .call = "transfer",
                                      .kind = kind,
                                      .wanted = wanted,
                                      .memory = memory[me].data(),
                                      .round_bytes = plan.window * plan.ranks},
                                     plan);
  });
  return outcome;
}

/// Pieces of `width` bytes, one of each rank after the other.
std::vector<request> columns(std::uint64_t ranks, std::uint64_t width, std::uint64_t rows) {
  std::vector<request> all(ranks);
  for (std::uint64_t r = 0; r < ranks; ++r)
    all[r].add({.file_offset = r * width,
                .run = width,
                .depth = 1,
                .levels = {{{.count = rows, .file_step = ranks * width, .memory_step = width}}}});
  return all;
}

/// A node of whose shares one chunk is damaged.
class damaged_node final : public testing::forwarded_node {
 public:
  damaged_node(std::shared_ptr<io_service> inner, std::uint64_t chunk)
      : forwarded_node(std::move(inner)), begin_(chunk * chunk_size) {}

  void answer(node_call call, completion done) override {
    std::vector<region> regions;
    if (call.kind == io_kind::read) object_regions(*call.wanted, call.file->striping, call.stripe_index, regions);
    for (const region& p : regions)
      if (p.node_offset < begin_ + chunk_size && p.node_end() > begin_) return done({errc::corrupt, "a damaged chunk"});
    forwarded_node::answer(std::move(call), std::move(done));
  }

 private:
  const std::uint64_t begin_;
};

bytes numbered(std::uint64_t n, std::uint64_t salt) {
  bytes b(n);
  for (std::uint64_t i = 0; i < n; ++i) b[i] = static_cast<std::byte>((i * 7 + salt * 31) % 255 + 1);
  return b;
}

}  // namespace

TEST_CASE("what the ranks exchange is what each has asked for, in windows of any size") {
  const std::uint64_t seed = testing::random_seed("exchange");
  std::mt19937_64 g(seed);
  for (int n = 0; n < 60; ++n) {
    INFO("OOC_TEST_SEED=" << seed << ", case " << n);
    const std::uint64_t ranks = between(g, 1, 5), size = between(g, 1, 120000);
    const std::vector<request> wanted = testing::random_requests(g, size, ranks);
    file_of_ranks f(size, ranks, 4096 * between(g, 1, 3));
    const exchange_plan plan = plan_exchange(wanted, f.shape->striping, between(g, 1, 150000));
    std::vector<bytes> out, in;
    bytes expected(size);
    std::uint64_t sum = 0, own = 0;
    for (std::uint64_t r = 0; r < ranks; ++r) {
      out.push_back(numbered(wanted[r].memory_end(), r));
      in.emplace_back(wanted[r].memory_end());
      sum += wanted[r].bytes();
      wanted[r].for_each_run([&](std::uint64_t at, std::uint64_t m, std::uint64_t length) {
        for (std::uint64_t i = 0; i < length; ++i) {
          expected[at + i] = out[r][m + i];
          own += (at + i) / plan.window % ranks == r;
        }
      });
    }
    thread_group writers(static_cast<int>(ranks)), readers(static_cast<int>(ranks));
    for (const failure& e : transfer(writers, f, access_kind::write, wanted, out, plan)) CHECK_FALSE(e);
    CHECK((f.contents() == expected));
    CHECK(f.bytes_written() == sum);  // nothing twice, and nothing that nobody has
    CHECK(writers.exchanged() == sum - own);
    for (const failure& e : transfer(readers, f, access_kind::read, wanted, in, plan)) CHECK_FALSE(e);
    CHECK(readers.exchanged() == sum - own);
    std::size_t wrong = 0;
    for (std::uint64_t r = 0; r < ranks; ++r) {
      bytes mine(wanted[r].memory_end());  // the gaps of a rank's memory stay as they were
      wanted[r].for_each_run([&](std::uint64_t at, std::uint64_t m, std::uint64_t length) {
        std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(at), length,
                    mine.begin() + static_cast<std::ptrdiff_t>(m));
      });
      wrong += in[r] != mine;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("each window is one request of its own rank, however fine the regions") {
  constexpr std::uint64_t ranks = 4, width = 16, rows = 2048;
  file_of_ranks f(ranks * width * rows, ranks, 4096);
  const std::vector<request> wanted = columns(ranks, width, rows);
  const exchange_plan plan = plan_exchange(wanted, f.shape->striping, ranks * 8192);
  CHECK(plan.window == 8192);
  CHECK(plan.rounds.size() == 4);
  std::vector<bytes> memory(ranks, bytes(width * rows));
  thread_group all(ranks);
  transfer(all, f, access_kind::read, wanted, memory, plan);
  for (const auto& nodes : f.faulty)
    for (const auto& n : nodes) CHECK(n->calls(io_kind::read) == plan.rounds.size());
}

TEST_CASE("a rank whose writes fail goes on taking part, and the others' windows are written") {
  constexpr std::uint64_t ranks = 3, width = 32, rows = 2000;
  file_of_ranks f(ranks * width * rows, ranks, 4096);
  const std::vector<request> wanted = columns(ranks, width, rows);
  const exchange_plan plan = plan_exchange(wanted, f.shape->striping, ranks * 8192);
  REQUIRE(plan.rounds.size() > 5);
  std::vector<bytes> memory(ranks, bytes(width * rows, std::byte{9}));
  // Of rank 1 the first window goes through, and nothing after it.
  constexpr std::size_t bad = 1;
  for (const auto& n : f.faulty[bad])
    for (std::uint64_t nth = 2; nth < 20; ++nth)
      n->add({.call = io_kind::write, .nth = nth, .error = std::make_error_code(std::errc::no_space_on_device)});
  thread_group all(ranks);
  const std::vector<failure> outcome = transfer(all, f, access_kind::write, wanted, memory, plan);
  for (std::size_t r = 0; r < ranks; ++r) CHECK((outcome[r].code == std::errc::no_space_on_device) == (r == bad));
  // It does not try for ever: two windows are on their way when it learns of the first failure.
  for (const auto& n : f.faulty[bad]) CHECK(n->calls(io_kind::write) <= 4);
  const bytes now = f.contents();
  std::size_t wrong = 0;
  for (std::uint64_t i = 0; i < now.size(); ++i) {
    const std::uint64_t window = i / plan.window;
    const bool written = window % ranks != bad || window / ranks == 0;
    wrong += now[i] != (written ? std::byte{9} : std::byte{0});
  }
  CHECK(wrong == 0);
}

TEST_CASE("a rank whose reads fail keeps nobody from what the others have read") {
  constexpr std::uint64_t ranks = 3, width = 32, rows = 2000;
  file_of_ranks f(ranks * width * rows, ranks, 4096);
  const bytes stored = numbered(ranks * width * rows, 4);
  REQUIRE_FALSE(f.seen_by[0]->write(request::contiguous(0, stored.size()), stored.data()));
  const std::vector<request> wanted = columns(ranks, width, rows);
  const exchange_plan plan = plan_exchange(wanted, f.shape->striping, ranks * 8192);
  std::vector<bytes> memory(ranks, bytes(width * rows));
  f.faulty[2].front()->add({.call = io_kind::read, .error = std::make_error_code(std::errc::io_error)});
  thread_group all(ranks);
  const std::vector<failure> outcome = transfer(all, f, access_kind::read, wanted, memory, plan);
  for (std::size_t r = 0; r < ranks; ++r) CHECK(static_cast<bool>(outcome[r]) == (r == 2));
  std::size_t wrong = 0;
  for (std::uint64_t r = 0; r < ranks; ++r)
    wanted[r].for_each_run([&](std::uint64_t at, std::uint64_t m, std::uint64_t length) {
      for (std::uint64_t i = 0; i < length; ++i)
        if ((at + i) / plan.window % ranks != 2) wrong += memory[r][m + i] != stored[at + i];
    });
  CHECK(wrong == 0);
}

TEST_CASE("damage between the regions of the ranks fails nobody's read, damage in one does") {
  constexpr std::uint64_t ranks = 3, width = 64, row = 8192, rows = 64;
  std::vector<request> wanted(ranks);
  for (std::uint64_t r = 0; r < ranks; ++r)
    wanted[r].add({.file_offset = r * width,
                   .run = width,
                   .depth = 1,
                   .levels = {{{.count = rows, .file_step = row, .memory_step = width}}}});
  for (const bool between_regions : {true, false}) {
    CAPTURE(between_regions);
    file_of_ranks f(rows * row, ranks, 65536);
    const bytes stored = numbered(rows * row, 5);
    REQUIRE_FALSE(f.seen_by[0]->write(request::contiguous(0, stored.size()), stored.data()));
    const exchange_plan plan = plan_exchange(wanted, f.shape->striping, ranks * 65536);
    // Rows are two chunks long, and the ranks want of the first one.
    for (auto& file : f.seen_by)
      file = std::make_unique<striped_file>(
          f.shape,
          striped_file::nodes{std::make_shared<damaged_node>(f.nodes[0], between_regions ? 5 : 4), f.nodes[1]});
    std::vector<bytes> memory(ranks, bytes(width * rows));
    thread_group all(ranks);
    const std::vector<failure> outcome = transfer(all, f, access_kind::read, wanted, memory, plan);
    std::size_t wrong = 0, corrupt = 0;
    for (std::uint64_t r = 0; r < ranks; ++r) {
      corrupt += outcome[r].code == errc::corrupt;
      wanted[r].for_each_run([&](std::uint64_t at, std::uint64_t m, std::uint64_t length) {
        for (std::uint64_t i = 0; i < length; ++i) wrong += memory[r][m + i] != stored[at + i];
      });
    }
    CHECK(corrupt == (between_regions ? 0 : 1));
    CHECK((wrong == 0) == between_regions);
  }
}
