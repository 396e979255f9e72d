// A program of a user on ranks: only installed headers, only oocarray::mpi.  The store is there.
#include <cstdio>
#include <numeric>
#include <oocarray/mpi.hpp>
#include <oocarray/ooc_array.hpp>
#include <string>

int main(int argc, char** argv) {
  using namespace ooc::literals;
  MPI_Init(&argc, &argv);
  {
    const auto world = ooc::mpi_group(MPI_COMM_WORLD);
    ooc::runtime rt{{.memory = 16_MiB, .block = 0, .read_ahead = 0, .on_fatal = {}}};
    const auto store = ooc::store::open(std::string("local:") + argv[1], {.workers = 2});
    ooc::ooc_array<double, 2> a{rt, store, "shared", ooc::create, {10, 10}, {.group = world}};
    const auto [first, last] = a.local_rows();
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t j = 0; j < 10; ++j) a[i][j] = static_cast<double>(10 * i + j);
    a.sync();
    const auto& read = a;
    const double sum = std::accumulate(read.begin(), read.end(), 0.0);
    if (world->rank() == 0) std::printf("%d ranks, sum %g\n", world->size(), sum);
  }
  MPI_Finalize();
}
