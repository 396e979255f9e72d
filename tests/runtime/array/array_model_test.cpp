// Arrays against plain vectors: random shapes, layouts, file orders, tiles, blocks and budgets.

#include "support/array_model.hpp"

#include "support/rounds.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

template <class T, std::size_t N, class Layout>
void random_operations(std::uint64_t salt) {
  OOC_INFO_SEED();
  for (int round = 0; round < rounds(6); ++round) {
    auto g = random_source(salt * 1000 + static_cast<std::uint64_t>(round));
    const store_kind kind = round % 3 == 2 ? store_kind::local : store_kind::in_memory;
    array_model<T, N, Layout> m(g, kind);
    INFO("round " << round << ": " << m.describe());
    m.run(60);
  }
}

template <class T, std::size_t N, class Layout>
void random_threads(std::uint64_t salt) {
  OOC_INFO_SEED();
  for (int round = 0; round < 3; ++round) {
    auto g = random_source(salt * 1000 + static_cast<std::uint64_t>(round));
    array_model<T, N, Layout> m(g, round == 2 ? store_kind::local : store_kind::in_memory);
    INFO("round " << round << ": " << m.describe());
    m.run_threads(4, rounds(1500));
  }
}

template <class T, std::size_t N, class Layout>
void random_operations_in_place(std::uint64_t salt) {
  OOC_INFO_SEED();
  for (int round = 0; round < 4; ++round) {
    auto g = random_source(salt * 1000 + static_cast<std::uint64_t>(round));
    array_model<T, N, Layout> m(g, store_kind::in_memory, model_kind::in_place);
    INFO("round " << round << ": " << m.describe());
    m.run(60);
  }
}

template <class T, std::size_t N>
void random_operations_in_grains(std::uint64_t salt) {
  OOC_INFO_SEED();
  for (int round = 0; round < rounds(6); ++round) {
    auto g = random_source(salt * 1000 + static_cast<std::uint64_t>(round));
    const store_kind kind = round % 3 == 2 ? store_kind::local : store_kind::in_memory;
    array_model<T, N, layout_right> m(g, kind, model_kind::in_grains);
    INFO("round " << round << ": " << m.describe());
    if (round % 2)
      m.run_threads(3, rounds(600));
    else
      m.run(60);
  }
}

}  // namespace

#define OOC_MODEL(salt, T, N, layout)                                                 \
  TEST_CASE("random operations agree with a vector: " #T ", rank " #N ", " #layout) { \
    random_operations<T, N, layout>(salt);                                            \
  }
#define OOC_THREADS(salt, T, N, layout)                                                           \
  TEST_CASE("threads on their own elements agree with a vector: " #T ", rank " #N ", " #layout) { \
    random_threads<T, N, layout>(salt);                                                           \
  }
#define OOC_IN_PLACE(salt, T, N, layout)                                                                 \
  TEST_CASE("random operations on a file in place agree with a vector: " #T ", rank " #N ", " #layout) { \
    random_operations_in_place<T, N, layout>(salt);                                                      \
  }

using complex = std::complex<double>;

OOC_MODEL(1, double, 1, layout_right)
OOC_MODEL(2, double, 2, layout_right)
OOC_MODEL(3, double, 2, layout_tiled)
OOC_MODEL(4, float, 3, layout_right)
OOC_MODEL(5, float, 1, layout_tiled)
OOC_MODEL(6, complex, 2, layout_right)
OOC_MODEL(7, complex, 3, layout_tiled)
OOC_MODEL(8, std::int8_t, 2, layout_right)
OOC_MODEL(9, std::uint16_t, 3, layout_tiled)
OOC_MODEL(10, std::int32_t, 4, layout_right)
OOC_MODEL(11, std::int64_t, 4, layout_tiled)
OOC_MODEL(12, triple, 1, layout_right)
OOC_MODEL(13, triple, 3, layout_right)
OOC_MODEL(14, triple, 2, layout_tiled)

OOC_IN_PLACE(31, double, 1, layout_right)
OOC_IN_PLACE(32, double, 2, layout_tiled)
OOC_IN_PLACE(33, float, 3, layout_right)
OOC_IN_PLACE(34, std::int8_t, 2, layout_right)
OOC_IN_PLACE(35, triple, 3, layout_right)

OOC_THREADS(21, double, 2, layout_right)
OOC_THREADS(22, triple, 2, layout_right)
OOC_THREADS(23, std::int32_t, 3, layout_tiled)

TEST_CASE("random operations on blocks in grains agree with a vector: double, rank 1") {
  random_operations_in_grains<double, 1>(41);
}
TEST_CASE("random operations on blocks in grains agree with a vector: float, rank 3") {
  random_operations_in_grains<float, 3>(42);
}
TEST_CASE("random operations on blocks in grains agree with a vector: triple, rank 2") {
  random_operations_in_grains<triple, 2>(43);
}
