// Sends a token round all ranks, each passing it to the next.
//
//     mpirun ... mpi_ring WARMUP SECONDS SLOTS BYTES...
//
// For each size rank 0 prints "BYTES RATE...": rounds a second in each of SLOTS slots of SECONDS
// after WARMUP seconds.  Every rank compares what it receives with what was sent.
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <string>

#include "clock.hpp"
#include "token.hpp"

namespace {

struct ring {
  int rank = 0;
  int size = 0;

  void send(papers::token& t) const {
    const auto m = t.memory();
    MPI_Send(m.data(), static_cast<int>(m.size()), MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD);
  }
  void receive(papers::token& t) const {
    const auto m = t.memory();
    MPI_Recv(m.data(), static_cast<int>(m.size()), MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
};

void lead(const ring& r, papers::token& token, papers::meter meter) {
  bool last = false;
  for (std::uint64_t n = 0; !last; ++n) {
    last = meter.over(papers::now());
    token.make(n, last);
    r.send(token);
    r.receive(token);
    meter.tick(papers::now());
    token.check(n);
  }
  std::printf("%zu", token.memory().size());
  for (const double rate : meter.rates()) std::printf(" %.6g", rate);
  std::printf("\n");
}

void follow(const ring& r, papers::token& token) {
  bool last = false;
  for (std::uint64_t n = 0; !last; ++n) {
    r.receive(token);
    last = token.check(n);
    r.send(token);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  ring r;
  MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &r.size);
  try {
    if (argc < 5) throw std::runtime_error("give WARMUP SECONDS SLOTS BYTES...");
    for (int i = 4; i < argc; ++i) {
      papers::token token(std::stoul(argv[i]));
      const double start = papers::now();
      if (r.rank == 0)
        lead(r, token, {start, start + std::stod(argv[1]), std::stod(argv[2]), std::stoul(argv[3])});
      else
        follow(r, token);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mpi_ring, rank %d: %s\n", r.rank, e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
