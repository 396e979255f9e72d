// Two openers of one shared array against a vector: what was written back is what the store holds, in
// whatever order pins, elements by index, writebacks, failed ones included, and values that return to what they were.

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "support/random_source.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

constexpr std::size_t elements = 4000;  // four blocks of two pages, each on both nodes

/// An array of a store in memory that is open twice, as in two processes.
struct opened_twice {
  memory_store nodes{2};
  runtime rt{memory(nodes.core->staging_bytes() + 32 * 8_KiB)};
  // A store of another name is another process's as far as claims go.
  ooc::store stores[2] = {nodes.handle(), ooc::store(std::make_shared<storage::store_core>(
                                              "memory:", "other", nodes.metadata, nodes.core->nodes()))};
  std::optional<ooc_array<std::int64_t, 1>> views[2];

  opened_twice() {
    array_options<std::int64_t> o = options();
    o.stripes.sf = 4096;
    ooc_array<std::int64_t, 1>(rt, stores[0], "a", create, {elements}, o);
    for (const int v : {0, 1}) views[v].emplace(rt, stores[v], "a", open, options());
  }
  static array_options<std::int64_t> options() {
    array_options<std::int64_t> o;
    o.block = 8_KiB;
    o.shared = true;
    return o;
  }

  std::vector<std::int64_t> stored() const {
    std::vector<std::int64_t> all(elements);
    throw_if(nodes.core->open("a", storage::open_mode::read)
                 .file->read(request::contiguous(0, elements * 8), reinterpret_cast<std::byte*>(all.data())));
    return all;
  }
  void fail_writes(std::size_t node) const {
    nodes.nodes[node]->fail(io_kind::write, std::make_error_code(std::errc::io_error));
  }
  void heal() const {
    for (const auto& n : nodes.nodes) n->heal();
  }
};

/// Each view writes elements of its own, all blocks hold those of both.
class shared_model {
 public:
  explicit shared_model(std::mt19937_64& g) : g_(g) {
    for (int& o : owner_) o = static_cast<int>(between(g_, 0, 1));
  }

  void run(int operations) {
    for (int n = 0; n < operations; ++n) {
      INFO("operation " << n);
      one(static_cast<int>(between(g_, 0, 1)));
    }
    for (const int v : {0, 1}) {
      pins_[v].clear();
      write_back(v);
    }
    REQUIRE(t_.stored() == now_);
  }

 private:
  using array = ooc_array<std::int64_t, 1>;

  void one(int v) {
    switch (between(g_, 0, 13)) {
      case 0:
      case 1:
      case 2: return write(v);
      case 3: return pin(v);
      case 4:
        if (!pins_[v].empty()) pins_[v].erase(pins_[v].begin());
        return;
      case 5:
      case 6: return write_back(v);
      case 7: return fail_to_write_back(v);
      case 8: return look(v);
      case 9: return pins_[v].empty() ? forget(v) : read(v);
      case 10: return scatter(v);
      case 11: return accumulate(v);
      case 12: return gather(v, some_of(v));
      case 13: return fail_to_scatter(v);
    }
  }

  // Few values, so that an element often returns to one that it had.
  void write(int v) {
    array& a = *t_.views[v];
    for (std::uint64_t n = between(g_, 1, 200); n > 0; --n) {
      const std::size_t at = between(g_, 0, elements - 1);
      if (owner_[at] == v) a[at] = now_[at] = static_cast<std::int64_t>(between(g_, 0, 2));
    }
  }
  void pin(int v) {
    const std::size_t first = between(g_, 0, elements - 1);
    const std::size_t last = between(g_, first, std::min(first + 1500, elements));
    if (pins_[v].size() < 2) pins_[v].push_back(t_.views[v]->pin({{first}, {last}}));
  }
  void write_back(int v) {
    t_.views[v]->writeback();
    const std::vector<std::int64_t> stored = t_.stored();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < elements; ++i) wrong += owner_[i] == v && stored[i] != now_[i];
    REQUIRE(wrong == 0);
  }
  // One node has taken its half of each block, the other has not.
  void fail_to_write_back(int v) {
    t_.fail_writes(between(g_, 0, 1));
    try {
      t_.views[v]->writeback();
    } catch (const io_error&) {
    }
    t_.heal();
  }
  // Of blocks that are out elements go past the twins.
  std::vector<std::size_t> some_of(int v) {
    std::vector<std::size_t> at;
    const std::size_t first = between(g_, 0, elements - 1);  // often of one block alone
    const std::size_t within = between(g_, 0, 1) ? elements : 1000;
    for (std::uint64_t n = between(g_, 1, 60); n > 0; --n) {
      const std::size_t i = (first + between(g_, 0, within - 1)) % elements;
      if (owner_[i] == v) at.push_back(i);
    }
    return at;
  }
  std::vector<std::int64_t> values_for(const std::vector<std::size_t>& at) {
    std::vector<std::int64_t> values;
    for (std::size_t n = 0; n < at.size(); ++n) values.push_back(static_cast<std::int64_t>(between(g_, 0, 2)));
    return values;
  }
  void scatter(int v) {
    const auto at = some_of(v);
    const auto values = values_for(at);
    t_.views[v]->scatter(at, values);
    for (std::size_t n = 0; n < at.size(); ++n) now_[at[n]] = values[n];
  }
  void accumulate(int v) {
    const auto at = some_of(v);
    const auto values = values_for(at);
    const auto op = [](std::int64_t was, std::int64_t value) { return (was + value) % 3; };
    t_.views[v]->accumulate(at, values, op);
    for (std::size_t n = 0; n < at.size(); ++n) now_[at[n]] = op(now_[at[n]], values[n]);
  }
  void gather(int v, const std::vector<std::size_t>& at) {
    std::vector<std::int64_t> got(at.size());
    std::as_const(*t_.views[v]).gather(at, got);
    std::size_t wrong = 0;
    for (std::size_t n = 0; n < at.size(); ++n) wrong += got[n] != now_[at[n]];
    REQUIRE(wrong == 0);
  }
  // Each element is then the old one, or one of those that were to be written.
  void fail_to_scatter(int v) {
    const auto at = some_of(v);
    const auto values = values_for(at);
    t_.fail_writes(between(g_, 0, 1));
    try {
      t_.views[v]->scatter(at, values);
    } catch (const io_error&) {
    }
    t_.heal();
    std::vector<std::int64_t> got(at.size());
    std::as_const(*t_.views[v]).gather(at, got);
    for (std::size_t n = 0; n < at.size(); ++n) now_[at[n]] = got[n];
  }
  void read(int v) {
    const array& a = *t_.views[v];
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < elements; ++i) wrong += owner_[i] == v && a[i] != now_[i];
    REQUIRE(wrong == 0);
  }
  // Another's elements are read from the store.
  void look(int v) {
    if (!pins_[v].empty()) return;
    write_back(v);
    t_.views[v]->invalidate();
    const array& a = *t_.views[v];
    const std::vector<std::int64_t> stored = t_.stored();
    REQUIRE(std::equal(a.begin(), a.end(), stored.begin(), stored.end()));
    read(v);
  }
  // Nothing has been evicted: what was not written back is what the store holds.
  void forget(int v) {
    t_.views[v]->invalidate(discard);
    const std::vector<std::int64_t> stored = t_.stored();
    for (std::size_t i = 0; i < elements; ++i)
      if (owner_[i] == v) now_[i] = stored[i];
    read(v);
  }

  std::mt19937_64& g_;
  opened_twice t_;
  std::vector<int> owner_ = std::vector<int>(elements);
  std::vector<std::int64_t> now_ = std::vector<std::int64_t>(elements);  ///< as its owner sees it
  std::vector<pin_guard<std::int64_t>> pins_[2];
};

}  // namespace

TEST_CASE("a value that returns after the copy of a pinned block was sent is sent as well") {
  opened_twice t;
  auto& a = *t.views[0];
  a[5] = 7;
  a.writeback();
  {
    const auto p = a.pin({{0}, {10}});
    p.span()[5] = 99;
    a.writeback();
    CHECK(t.stored()[5] == 99);
  }
  a[5] = 7;
  a.writeback();
  CHECK(t.stored()[5] == 7);
  a.invalidate();
  CHECK(std::as_const(a)[5] == 7);
}

TEST_CASE("a value that returns after a store of which one node took its part is sent as well") {
  opened_twice t;
  auto& a = *t.views[0];
  a[5] = 7, a[600] = 8;  // of one block, on two nodes
  a.writeback();
  const bool pinned = GENERATE(false, true);
  {
    std::optional<pin_guard<std::int64_t>> p;
    if (pinned) p.emplace(a.pin({{0}, {10}}));
    const int failures = GENERATE(1, 2);
    for (int n = 0; n < failures; ++n) {
      a[5] = 99 + n, a[600] = 98 + n;
      t.fail_writes(1);
      CHECK_THROWS_AS(a.writeback(), io_error);
      t.heal();
      CHECK(t.stored()[5] == 99 + n);
      CHECK(t.stored()[600] == 8);
    }
  }
  auto& other = *t.views[1];
  other[6] = 1;  // beside it, and not to be touched
  other.writeback();
  a[5] = 7, a[600] = 8;
  a.writeback();
  CHECK(t.stored()[5] == 7);
  CHECK(t.stored()[6] == 1);
  CHECK(t.stored()[600] == 8);
}

TEST_CASE("after random pins, writebacks that fail and values that return the store has the last") {
  OOC_INFO_SEED();
  for (int round = 0; round < 40; ++round) {
    INFO("round " << round);
    auto g = random_source(7000 + static_cast<std::uint64_t>(round));
    shared_model(g).run(60);
  }
}
