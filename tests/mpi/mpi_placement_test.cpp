// placement::by_rank: what the nodes are asked by the ranks whose parts they hold.
#include <catch2/catch.hpp>

#include "mpi/ranks.hpp"
#include "mpi/small_blocks.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/forwarded_node.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using Catch::Contains;
using testing::all_ranks;
using testing::common_store;
using testing::message_of;
using testing::small;

namespace {

using group_ptr = std::shared_ptr<process_group>;
using matrix = ooc_array<double, 2>;

constexpr std::size_t columns = 512;  // a row is a block

array_options<double> placed(const group_ptr& g) {
  return {.block = 4096, .placement = placement::by_rank, .replace = true, .group = g, .owner_computes = true};
}

/// Bytes that this rank has asked of each node, or sent to it.
std::vector<std::uint64_t> traffic(const store& s) {
  std::vector<std::uint64_t> bytes;
  for (const io_stats& n : s.node_stats()) bytes.push_back(n.bytes_read + n.bytes_written);
  return bytes;
}

/// A node that is on another host, or on this one, whatever the truth.
class somewhere final : public testing::forwarded_node {
 public:
  somewhere(std::shared_ptr<storage::io_service> inner, bool near) : forwarded_node(std::move(inner)), near_(near) {}
  void answer(storage::node_call call, storage::completion done) override {
    if (call.kind != storage::io_kind::find_locality) return forwarded_node::answer(std::move(call), std::move(done));
    call.answer->distance = near_ ? storage::locality::host : storage::locality::network;
    done({});
  }

 private:
  bool near_;
};

}  // namespace

TEST_CASE("a rank that reads and writes its whole part speaks to its own node only") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  CHECK(s.near_nodes().size() == s.nodes());
  runtime rt(small(1));
  const std::size_t rows = 40 * static_cast<std::size_t>(g->size());
  matrix a(rt, s, "placed/a", create, {rows, columns}, placed(g));
  const auto [first, last] = a.local_rows();
  REQUIRE(last - first == 40);
  const std::uint32_t own = a.stripes().node_of(first * columns * sizeof(double), s.nodes());
  CHECK(own == static_cast<std::uint32_t>(g->rank()) % s.nodes());

  const std::vector<std::uint64_t> before = traffic(s);
  const std::uint64_t part = 40 * 4096;
  for (std::size_t i = first; i < last; ++i)
    for (std::size_t j = 0; j < columns; ++j) a[i][j] = static_cast<double>(i * columns + j);
  a.sync();
  std::vector<double> mine(40 * columns), other(mine);
  a.read_all(a.local_box(), mine);
  for (double& v : mine) v += 1;
  a.write_all(a.local_box(), mine);
  double sum = 0;
  for (std::size_t i = first; i < last; ++i) sum += std::as_const(a)[i][columns - 1];
  CHECK(sum != 0);
  const std::vector<std::uint64_t> after = traffic(s);
  for (std::uint32_t n = 0; n < s.nodes(); ++n) {
    INFO("node " << n << ", own " << own);
    if (n == own)
      CHECK(after[n] - before[n] >= 4 * part);
    else
      CHECK(after[n] == before[n]);
  }

  // And every rank's bytes are where all find them.
  const int next = (g->rank() + 1) % g->size();
  a.read_all(a.part(next), other);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < other.size(); ++i)
    wrong += other[i] != static_cast<double>(a.part(next).lower[0] * columns + i + 1);
  CHECK(wrong == 0);
}

TEST_CASE("parts are stripes again when the array is opened, with blocks of any size") {
  const group_ptr g = all_ranks();
  const store s = common_store();
  runtime rt(small(1));
  const std::size_t rows = 21 * static_cast<std::size_t>(g->size()) - 5;
  box<2> mine;
  {
    matrix a(rt, s, "placed/b", create, {rows, columns}, placed(g));
    mine = a.local_box();
    a.close();
  }
  const matrix a(rt, s, "placed/b", open_read_only, {.block = 5 * 4096, .group = g});
  CHECK(a.local_box() == mine);
  CHECK(a.stripes().sf == a.part(0).size() * sizeof(double));
}

TEST_CASE("nodes that do not lie beside the ranks are the same error on all, and nothing is made") {
  const group_ptr g = all_ranks();
  const int last = g->size() - 1;
  const store s = testing::with_nodes(
      common_store(), [&](const auto& node) { return std::make_shared<somewhere>(node, g->rank() != last); });
  runtime rt(small(1));
  const auto make = [&](const array_options<double>& o) { matrix a(rt, s, "placed/none", create, {70, columns}, o); };
  CHECK_THAT(message_of<usage_error>([&] { make(placed(g)); }),
             Contains("'placed/none'") && Contains("no I/O node on the host of rank " + std::to_string(last)));
  CHECK_THROWS_AS(matrix(rt, s, "placed/none", open, {.group = g}), error);
  auto o = placed(g);
  o.stripes.sf = 65536;
  CHECK_THAT(message_of<usage_error>([&] { make(o); }), Contains("options.stripes"));
  o = placed(nullptr);
  o.owner_computes = false;
  CHECK_THAT(message_of<usage_error>([&] { make(o); }), Contains("needs options.group"));
}
