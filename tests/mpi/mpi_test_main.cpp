// main() of tests on several ranks: starts MPI, checks that the ranks are there, and ends all of
// them where one has failed, as the others would wait for it.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "mpi/ranks.hpp"
#include "support/catch_runner.hpp"
#include "support/random_seed.hpp"

namespace {

struct surroundings {
  int rank = 0;
  std::uint64_t seed = 0;
  std::string folder;  ///< of the store; empty: none was made
  std::optional<ooc::store> store;
} here;

std::string from_rank_0(std::string text) {
  auto length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

}  // namespace

namespace ooc::testing {

std::shared_ptr<process_group> all_ranks(std::chrono::milliseconds deadline) {
  return mpi_group(MPI_COMM_WORLD, {.deadline = deadline});
}

std::uint64_t common_seed() { return here.seed; }

ooc::store common_store() {
  if (here.store) return *here.store;
  const store_options small{.workers = 1, .staging = 64_KiB};
  if (const char* given = std::getenv("OOC_TEST_STORE")) {
    here.store = store::open(given, small);
    return *here.store;
  }
  std::string made = (std::filesystem::temp_directory_path() / "oocarray-mpi-XXXXXX").string();
  if (here.rank == 0 && !::mkdtemp(made.data())) throw std::runtime_error("mkdtemp failed");
  here.folder = from_rank_0(made);
  const std::string url = "local:" + here.folder + "/0," + here.folder + "/1";
  if (here.rank == 0) here.store = store::open(url, small);
  MPI_Barrier(MPI_COMM_WORLD);
  if (here.rank != 0) here.store = store::open(url, small);
  MPI_Barrier(MPI_COMM_WORLD);
  return *here.store;
}

}  // namespace ooc::testing

int main(int argc, char** argv) {
  int provided = 0, size = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &here.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (const char* ranks = std::getenv("OOC_TEST_RANKS"); ranks && std::atoi(ranks) != size) {
    std::cerr << "this test is declared for " << ranks << " ranks and got " << size << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (here.rank == 0) here.seed = ooc::testing::random_seed("ranks");
  MPI_Bcast(&here.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);

  // Catch counts only its own cases; the ranks that pass need not all say so.
  if (ooc::testing::run_cases(argc, argv, true)) {
    std::cerr << "rank " << here.rank << " of " << size << " failed" << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  here.store.reset();
  MPI_Barrier(MPI_COMM_WORLD);
  if (here.rank == 0 && !here.folder.empty()) std::filesystem::remove_all(here.folder);
  MPI_Finalize();
  return 0;
}
