// MPI on arrays that are not pinned and larger than the memory, where userfaultfd serves the kernel's touches: Open MPI
// moves long messages by process_vm_readv().
#include <mpi.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "mpi/ranks.hpp"
#include "oocarray/ooc_array.hpp"

using namespace ooc;
using namespace ooc::literals;

namespace {

using words = ooc_array<std::uint64_t, 1>;

constexpr std::uint64_t memory = 8_MiB;
constexpr std::size_t count = 8 * memory / sizeof(std::uint64_t);

int this_rank() {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}
int rank_count() {
  int n = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  return n;
}

std::uint64_t word_of(int rank, std::size_t i) { return i * 1000 + static_cast<std::uint64_t>(rank); }

runtime_options by_userfaultfd() {
  runtime_options o;
  o.memory = memory;
  o.block = 64_KiB;
  o.mapping = mapping_way::userfaultfd;
  return o;
}

array_options<std::uint64_t> again() {
  array_options<std::uint64_t> o;
  o.replace = true;
  return o;
}

/// Two arrays of this rank's own, the first one filled.
struct arrays {
  explicit arrays(const std::string& name = "kernel" + std::to_string(this_rank()))
      : rt(by_userfaultfd()),
        s(testing::common_store()),
        from(rt, s, name + "from", create, {count}, again()),
        to(rt, s, name + "to", create, {count}, again()) {
    from.overwrite(from.whole());
    for (std::size_t i = 0; i < count; ++i) from.data()[i] = word_of(this_rank(), i);
  }
  std::size_t differ_from(int rank) const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < count; ++i) n += to.data()[i] != word_of(rank, i);
    return n;
  }

  runtime rt;
  store s;
  words from, to;
};

/// On all ranks alike.
bool kernel_faults_here() {
  int here = 0;
  try {
    here = runtime(by_userfaultfd()).stats().kernel_access == 1;
  } catch (const usage_error&) {  // there is none
  }
  int everywhere = 0;
  MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!everywhere) WARN("not run: faults of system calls need a privilege");
  return everywhere != 0;
}

}  // namespace

TEST_CASE("a rank sends an array that is not pinned to another's, as one message") {
  if (!kernel_faults_here()) return;
  arrays mine;
  const int next = (this_rank() + 1) % rank_count(), before = (this_rank() + rank_count() - 1) % rank_count();
  CHECK(MPI_Sendrecv(mine.from.data(), static_cast<int>(count), MPI_UINT64_T, next, 0, mine.to.data(),
                     static_cast<int>(count), MPI_UINT64_T, before, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(mine.differ_from(before) == 0);
  CHECK(mine.rt.stats().resident_bytes <= mine.rt.stats().budget_bytes);
}

TEST_CASE("a rank gets from and puts into an array of another that is not pinned") {
  if (!kernel_faults_here()) return;
  arrays mine;
  const int next = (this_rank() + 1) % rank_count(), before = (this_rank() + rank_count() - 1) % rank_count();
  constexpr std::size_t part = count / 4;
  MPI_Win window;
  REQUIRE(MPI_Win_create(mine.to.data(), count * sizeof(std::uint64_t), sizeof(std::uint64_t), MPI_INFO_NULL,
                         MPI_COMM_WORLD, &window) == MPI_SUCCESS);
  MPI_Win_fence(0, window);
  CHECK(MPI_Put(mine.from.data(), static_cast<int>(count), MPI_UINT64_T, next, 0, static_cast<int>(count), MPI_UINT64_T,
                window) == MPI_SUCCESS);
  MPI_Win_fence(0, window);
  CHECK(mine.differ_from(before) == 0);
  MPI_Win_fence(0, window);
  // Over what this rank has sent: its own words, as the next rank has them.
  for (std::size_t i = 0; i < part; ++i) mine.from.data()[i] = 0;
  CHECK(MPI_Get(mine.from.data(), static_cast<int>(part), MPI_UINT64_T, next, 0, static_cast<int>(part), MPI_UINT64_T,
                window) == MPI_SUCCESS);
  MPI_Win_fence(0, window);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += mine.from.data()[i] != word_of(this_rank(), i);
  CHECK(wrong == 0);
  MPI_Win_free(&window);
}
