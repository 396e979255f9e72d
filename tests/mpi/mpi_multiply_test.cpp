// Products of matrices on several ranks: what Eigen computes in one process, with each panel of b read once.  Elements
// are small whole numbers, so that sums are exact in whatever order they are taken.
#include <algorithm>
#include <catch2/catch.hpp>
#include <complex>
#include <numeric>

#include "mpi/own_rows.hpp"
#include "oocarray/algorithm/multiply.hpp"
#include "support/random_boxes.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

/// The same on all ranks.
template <class T>
dense<T> random_matrix(std::mt19937_64& g, std::size_t rows, std::size_t columns) {
  return matrix_of<T>(rows, columns, [&] { return static_cast<int>(g() % 9) - 4; });
}

template <class T, class Layout = layout_right>
void multiply_at_random(int times, std::uint64_t salt, file_order order = file_order::row_major) {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(salt);
  const store st = common_store();
  for (int n = 0; n < times; ++n) {
    const auto extent = [&] { return between(g, 1, between(g, 0, 1) ? 9 : 250); };
    const std::size_t rows = extent(), depth = extent(), columns = extent(), vectors = between(g, 1, 4);
    const std::uint64_t wish = between(g, 150_KiB, between(g, 0, 1) ? 200_KiB : 2_MiB);
    const multiply_options o{.threads = static_cast<unsigned>(between(g, 1, 3)), .mark = between(g, 0, 1) == 0};
    array_options<T> ao{.order = order, .block = 4_KiB * between(g, 1, 2), .replace = true, .group = group};
    if (!Layout::contiguous) ao.tile = {16, 16};
    array_options<T> co = ao;
    co.owner_computes = between(g, 0, 1);
    const bool alone = between(g, 0, 3) == 0;  // each rank opens b by itself
    CAPTURE(rows, depth, columns, vectors, wish, o.threads, o.mark, co.owner_computes, alone);
    // One rank has less memory than the others.
    const bool poor = group->rank() == group->size() / 2;
    runtime rt(memory(st.core()->staging_bytes() + 32 * 4_KiB + wish + (poor ? 0 : 100_KiB)));
    ooc_array<T, 2, Layout> a{rt, st, "multiply/a", create, {rows, depth}, ao};
    ooc_array<T, 2, Layout> c{rt, st, "multiply/c", create, {rows, columns}, co};
    ooc_array<T, 2, Layout> b{rt, st, "multiply/b", create, {depth, columns}, ao};
    const dense<T> left = random_matrix<T>(g, rows, depth), right = random_matrix<T>(g, depth, columns);
    store_own_rows<T>(left, a);
    store_own_rows<T>(right, b);
    if (alone) {
      b.close();
      b = ooc_array<T, 2, Layout>(rt, st, "multiply/b", open_read_only, {.tile = ao.tile, .block = ao.block});
    }

    const multiply_statistics done = multiply(a, b, c, o);
    REQUIRE(holds<T>(c, left * right));
    CHECK(sum_of_ranks(*group, done.bytes_written) == rows * columns * sizeof(T));
    CHECK(sum_of_ranks(*group, done.bytes_read) ==
          (done.passes * rows * depth + done.passes_of_b * depth * columns) * sizeof(T));

    std::vector<T> x(depth * vectors), y(rows * vectors);
    const dense<T> several = random_matrix<T>(g, depth, vectors);
    std::copy(several.data(), several.data() + several.size(), x.begin());
    const multiply_statistics once = multiply(a, x, y, o);
    const dense<T> product = left * several;
    REQUIRE(std::equal(y.begin(), y.end(), product.data()));
    CHECK(sum_of_ranks(*group, once.bytes_read) == once.passes * rows * depth * sizeof(T));
    group->barrier("all have compared");
    a.close();
    b.close();
    c.close();
  }
}

struct three_matrices {
  static constexpr std::size_t n = 240;

  three_matrices(runtime& rt, const store& s, const std::shared_ptr<process_group>& group, std::mt19937_64& g)
      : a(rt, s, "multiply/a", create, {n, n}, {.block = 4_KiB, .replace = true, .group = group}),
        b(rt, s, "multiply/b", create, {n, n}, {.block = 4_KiB, .replace = true, .group = group}),
        c(rt, s, "multiply/c", create, {n, n}, {.block = 4_KiB, .replace = true, .group = group}),
        left(random_matrix<double>(g, n, n)),
        right(random_matrix<double>(g, n, n)) {
    store_own_rows(left, a);
    store_own_rows(right, b);
    a.sync();
    b.sync();
  }

  ooc_array<double, 2> a, b, c;
  const dense<double> left, right;
};

}  // namespace

TEST_CASE("ranks multiply matrices as Eigen does, and read each panel of b once") {
  multiply_at_random<double>(6, 61);
  multiply_at_random<std::complex<float>>(3, 62);
}

TEST_CASE("ranks multiply matrices in tiles") { multiply_at_random<double, layout_tiled>(3, 63, file_order::tiled); }

TEST_CASE("what ranks read from the store for a product is what its statistics say") {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(64);
  const store st = common_store();
  runtime rt(memory(st.core()->staging_bytes() + 32 * 4_KiB + 250_KiB, 1));  // without read-ahead, bytes are exact
  three_matrices m(rt, st, group, g);
  group->barrier("all is in the store");
  const io_stats before = st.stats();
  const multiply_statistics done = multiply(m.a, m.b, m.c, {.threads = 1});
  const io_stats moved = st.stats() - before;
  CHECK(moved.bytes_read == done.bytes_read);
  CHECK(moved.bytes_written == done.bytes_written);
  CHECK(holds<double>(m.c, m.left * m.right));
  group->barrier("all have compared");
}

TEST_CASE("what one rank cancels, or cannot write, ends the product on all and leaves one mark") {
  const auto group = all_ranks();
  const bool cancels = GENERATE(true, false);
  std::mt19937_64 g = common_source(65);
  const faulty_store nodes;
  runtime rt(memory(nodes.handle.core()->staging_bytes() + 32 * 4_KiB + 250_KiB, 1));
  three_matrices m(rt, nodes.handle, group, g);
  const bool mine = group->rank() + 1 == group->size();
  const auto spoil = [&](const pass_progress& p) { return !mine || !cancels || p.part() < 0.9; };
  if (mine && !cancels)
    nodes.fail({.call = storage::io_kind::write, .error = std::make_error_code(std::errc::io_error)});
  if (cancels)
    CHECK_THROWS_WITH(multiply(m.a, m.b, m.c, {.threads = 2, .progress = spoil}), Catch::Contains("cancelled"));
  else
    CHECK_THROWS_AS(multiply(m.a, m.b, m.c, {.threads = 2, .progress = spoil}), io_error);
  nodes.clear();
  CHECK(holds(m.a, m.left));
  CHECK(holds(m.b, m.right));
  group->barrier("all have compared");
  m.c.close();
  CHECK_THROWS_WITH((ooc_array<double, 2>{rt, nodes.handle, "multiply/c", open, {.group = group}}),
                    Catch::Contains("in the middle of an algorithm") && Catch::Contains("product of"));
  ooc_array<double, 2> again{rt, nodes.handle, "multiply/c", open, {.group = group, .unfinished = open_unfinished}};
  multiply(m.a, m.b, again);
  CHECK(holds<double>(again, m.left * m.right));
  again.close();
  ooc_array<double, 2> whole{rt, nodes.handle, "multiply/c", open, {.group = group}};
  group->barrier("all have opened it");
}

TEST_CASE("a rank that cannot read its share of b ends the product on all, and nothing has been written") {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(67);
  const faulty_store nodes;
  runtime rt(memory(nodes.handle.core()->staging_bytes() + 32 * 4_KiB + 250_KiB, 1));
  three_matrices m(rt, nodes.handle, group, g);
  if (group->rank() == group->size() / 2)
    nodes.fail({.call = storage::io_kind::read, .error = std::make_error_code(std::errc::io_error)});
  CHECK_THROWS_AS(multiply(m.a, m.b, m.c), io_error);
  nodes.clear();
  m.c.close();
  ooc_array<double, 2> c{rt, nodes.handle, "multiply/c", open, {.group = group}};  // not marked
  CHECK(holds<double>(c, dense<double>::Zero(m.n, m.n)));
  multiply(m.a, m.b, c);
  CHECK(holds<double>(c, m.left * m.right));
  group->barrier("all have compared");
}

TEST_CASE("a rank that has too little memory for a product says so on all") {
  const auto group = all_ranks();
  std::mt19937_64 g = common_source(66);
  const store st = common_store();
  runtime rt(memory(st.core()->staging_bytes() + 1_MiB));
  three_matrices m(rt, st, group, g);
  const bool mine = group->rank() == 0;
  CHECK_THROWS_WITH(multiply(m.a, m.b, m.c, {.memory = mine ? 4_KiB : 0}),
                    Catch::Contains("options.memory allows 4096"));
  multiply(m.a, m.b, m.c);
  CHECK(holds<double>(m.c, m.left * m.right));
  group->barrier("all have compared");
}
