// oocbench_ranks CASE STORE MEMORY ROUNDS: started by oocbench on several ranks; prints what rank 0
// measured as one JSON object.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "oocarray/mpi.hpp"
#include "ranks/case.hpp"

int main(int argc, char** argv) {
  int provided = 0, rank = 0, status = 0;
#ifdef OOC_BENCH_MPI_IO
  ::setenv("OMPI_MCA_mca_base_component_path", "SYS_DEFAULT:" OOC_BENCH_MPI_IO, 0);
#endif
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    if (argc != 5) throw std::runtime_error("usage: oocbench_ranks CASE STORE MEMORY ROUNDS");
    const std::string name = argv[1];
    bench::options o;
    o.url = argv[2];
    o.memory = std::stoull(argv[3]);
    o.rounds = static_cast<unsigned>(std::stoul(argv[4]));
    bench::json result;
    if (name == "coherence")
      result = bench::ranks::coherence(o);
    else if (name == "collective")
      result = bench::ranks::collective(o);
    else
      throw std::runtime_error("there is no case '" + name + "'");
    if (rank == 0) std::printf("%s\n", result.dump().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "oocbench_ranks, rank %d: %s\n", rank, e.what());
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
