#include "harness/ranks.hpp"

#include <cstdio>
#include <cstdlib>

#ifdef OOC_EXAMPLES_WITH_MPI
#include "oocarray/mpi.hpp"
#endif

namespace examples {

#ifdef OOC_EXAMPLES_WITH_MPI

namespace {

/// A program started by hand does without MPI: it starts at once, and anywhere.
bool started_on_ranks() {
  for (const char* mark : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"})
    if (std::getenv(mark)) return true;
  return false;
}

}  // namespace

ranks::ranks(int& argc, char**& argv) {
  if (!started_on_ranks()) return;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  started_ = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  if (size_ == 1) return;
  group_ = ooc::mpi_group(MPI_COMM_WORLD);
  if (!leads() && !std::freopen("/dev/null", "w", stdout)) std::perror("/dev/null");
}

ranks::~ranks() {
  group_.reset();
  if (started_) MPI_Finalize();
}

void ranks::sum(std::span<double> x) const {
  if (size_ > 1) MPI_Allreduce(MPI_IN_PLACE, x.data(), static_cast<int>(x.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

double ranks::max(double x) const {
  if (size_ > 1) MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return x;
}

void ranks::broadcast(std::span<double> x, int root) const {
  if (size_ > 1) MPI_Bcast(x.data(), static_cast<int>(x.size()), MPI_DOUBLE, root, MPI_COMM_WORLD);
}

std::string ranks::broadcast(std::string text, int root) const {
  if (size_ == 1) return text;
  auto length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, root, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, root, MPI_COMM_WORLD);
  return text;
}

void ranks::barrier() const {
  if (size_ > 1) MPI_Barrier(MPI_COMM_WORLD);
}

void ranks::abort(int status) const {
  if (size_ > 1) MPI_Abort(MPI_COMM_WORLD, status);
}

#else

ranks::ranks(int&, char**&) {}
ranks::~ranks() = default;
void ranks::sum(std::span<double>) const {}
double ranks::max(double x) const { return x; }
void ranks::broadcast(std::span<double>, int) const {}
std::string ranks::broadcast(std::string text, int) const { return text; }
void ranks::barrier() const {}
void ranks::abort(int) const {}

#endif

double ranks::sum(double x) const {
  sum(std::span(&x, 1));
  return x;
}

}  // namespace examples
