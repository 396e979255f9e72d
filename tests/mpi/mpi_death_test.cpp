// A rank dies between two syncs: those that are left end with an error, and do not hang.  Run by
// rank_dies.cmake, which looks at what is printed and how long it took.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "oocarray/mpi.hpp"
#include "oocarray/ooc_array.hpp"

int main(int argc, char** argv) {
  using namespace ooc::literals;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  const auto world = ooc::mpi_group(MPI_COMM_WORLD, {.deadline = std::chrono::seconds(3)});
  ooc::runtime rt({.memory = 2_MiB});
  const std::string url = std::string("local:") + argv[1];
  const ooc::store_options small{.workers = 1, .staging = 64_KiB};
  if (world->rank() != 0) MPI_Barrier(MPI_COMM_WORLD);  // until the store is made
  const ooc::store store = ooc::store::open(url, small);
  if (world->rank() == 0) MPI_Barrier(MPI_COMM_WORLD);
  ooc::ooc_array<int, 1> a(rt, store, "a", ooc::create, {100'000}, {.group = world});
  a.sync();
  if (world->rank() == world->size() - 1) std::raise(SIGKILL);
  try {
    a.sync();
    std::printf("sync ended well\n");
  } catch (const ooc::error& e) {
    std::printf("rank %d: %s\n", world->rank(), e.what());
  }
  std::fflush(nullptr);
  std::_Exit(3);  // MPI_Finalize would wait for the dead
}
