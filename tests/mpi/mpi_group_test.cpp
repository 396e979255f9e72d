// The ranks of a communicator as a process_group: what is exchanged, and what goes wrong.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "mpi/ranks.hpp"
#include "oocarray/error.hpp"
#include "storage/collective/together.hpp"
#include "support/random_seed.hpp"
#include "support/soon.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace std::chrono_literals;
using ooc::testing::all_ranks;
using bytes = process_group::bytes;

namespace {

bytes some_bytes(std::size_t n, int salt) {
  bytes b(n);
  for (std::size_t i = 0; i < n; ++i) b[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(salt));
  return b;
}

}  // namespace

TEST_CASE("every rank gets what each rank passed, of whatever length") {
  const auto group = all_ranks();
  std::mt19937_64 g = testing::common_source(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<bytes> expected;
    // Few bytes travel with the header, up to 256; one rank's more make all travel after it.
    const std::uint64_t most = round % 5 == 0 ? 100'000 : round % 5 == 1 ? 258 : 256;
    const std::uint64_t least = round % 5 == 1 ? 254 : 0;
    for (int r = 0; r < group->size(); ++r) expected.push_back(some_bytes(testing::between(g, least, most), r + round));
    CHECK(group->all_gather("test", expected[static_cast<std::size_t>(group->rank())]) == expected);
  }
}

TEST_CASE("a broadcast brings the root's bytes to all, and sums are over all ranks") {
  const auto group = all_ranks();
  for (int root = 0; root < group->size(); ++root)
    for (const std::size_t length : {0, 1, 256, 257, 1000}) {
      const bytes mine = group->rank() == root ? some_bytes(length, root) : bytes(3);
      CHECK(group->broadcast("test", mine, root) == some_bytes(length, root));
    }
  const auto n = static_cast<std::uint64_t>(group->size());
  std::vector<std::uint64_t> v{1, static_cast<std::uint64_t>(group->rank())};
  group->all_reduce("test", v, reduction::sum);
  CHECK(v == std::vector<std::uint64_t>{n, n * (n - 1) / 2});
  v = {static_cast<std::uint64_t>(group->rank())};
  group->all_reduce("test", v, reduction::max);
  CHECK(v.front() == n - 1);
}

TEST_CASE("an exception on one rank is the same exception on all") {
  const auto group = all_ranks();
  const int thrower = group->size() - 1;
  const std::string who = group->size() > 1 ? "rank " + std::to_string(thrower) + ": " : "";
  const auto fails = [&](const auto& e) {
    return [&group, e, thrower] {
      group->together("test", [&] {
        if (group->rank() == thrower) throw e;
        return bytes{};
      });
    };
  };
  const auto code = std::make_error_code(std::errc::file_exists);
  try {
    fails(usage_error(code, "'x' is there"))();
    FAIL("nothing was thrown");
  } catch (const usage_error& e) {
    CHECK(e.code() == code);
    CHECK(e.what() == who + usage_error(code, "'x' is there").what());
  }
  CHECK_THROWS_AS(fails(integrity_error(errc::corrupt, "bad"))(), integrity_error);
  CHECK_THROWS_AS(fails(io_error(errc::closed, "gone"))(), io_error);
  CHECK_THROWS_WITH(fails(std::runtime_error("else"))(), Catch::Contains("else"));
  const auto own = [&] { return bytes(static_cast<std::size_t>(group->rank())); };
  CHECK(group->together("test", own).back().size() == static_cast<std::size_t>(group->size()) - 1);
}

TEST_CASE("a result that no message carries is an error on all ranks, and not an empty one") {
  const auto group = all_ranks();
  const int last = group->size() - 1;
  constexpr std::size_t most = 10'000;
  const auto tell = [&](std::size_t length) {
    return storage::together(
        *group, "sums of 'a'", [&] { return some_bytes(group->rank() == last ? length : 1, last); }, most);
  };
  CHECK(tell(most).back() == some_bytes(most, last));
  try {
    tell(most + 1);
    FAIL("nothing was thrown");
  } catch (const usage_error& e) {
    CHECK(e.code() == errc::invalid_request);
    CHECK_THAT(e.what(), Catch::Contains("10001 bytes") && Catch::Contains("10000"));
    if (last != 0) CHECK_THAT(e.what(), Catch::Contains("rank " + std::to_string(last)));
  }
  CHECK(tell(0).back().empty());
  // protobuf writes messages of up to 2^31 - 1 bytes.
  STATIC_REQUIRE(storage::most_told < (std::size_t{1} << 31) - 100);
}

TEST_CASE("ranks that call different things are told who called what, and may go on") {
  const auto group = all_ranks();
  if (group->size() == 1) return;  // nobody to differ from
  const bool other = group->rank() == 1;
  try {
    group->barrier(other ? "sync of 'b'" : "sync of 'a'");
    FAIL("nothing was thrown");
  } catch (const usage_error& e) {
    CHECK(e.code() == errc::not_together);
    CHECK_THAT(e.what(), Catch::Contains("rank 1: sync of 'b'") && Catch::Contains("sync of 'a'"));
  }
  std::uint64_t one = 1;
  if (other)
    CHECK_THROWS_AS(group->barrier("x"), usage_error);
  else
    CHECK_THROWS_AS(group->all_reduce("x", {&one, 1}, reduction::sum), usage_error);
  CHECK_NOTHROW(group->barrier("together again"));
}

TEST_CASE("ranks that wait say after some time for whom and in which call, one line for all") {
  // The longest deadline is a matter of years, and has not passed when the last rank comes.
  const auto deadline = GENERATE(std::chrono::milliseconds(60s), std::chrono::milliseconds::max());
  const auto group = mpi_group(MPI_COMM_WORLD, {.deadline = deadline, .notice_after = 50ms});
  if (group->size() == 1) return;
  const int late = group->size() - 1;
  testing::temporary_folder own;  // of rank 0, whose folder all use
  std::string folder = own.path().string();
  folder.resize(4096);
  MPI_Bcast(folder.data(), 4096, MPI_CHAR, 0, MPI_COMM_WORLD);
  const std::filesystem::path said = std::string(folder.c_str()) + "/said";
  const auto text = [&] {
    std::ifstream in(said);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string mine = said.string() + (group->rank() == 0 ? "" : std::to_string(group->rank()));
  const int old = ::dup(STDERR_FILENO), file = ::open(mine.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  REQUIRE(::dup2(file, STDERR_FILENO) == STDERR_FILENO);
  MPI_Barrier(MPI_COMM_WORLD);
  if (group->rank() == late) CHECK(testing::soon([&] { return !text().empty(); }));
  group->barrier("sync of 'a'");
  group->barrier("more");
  ::dup2(old, STDERR_FILENO);
  ::close(old);
  ::close(file);
  const std::string others = late == 1 ? "rank 0 waits" : "rank 0-" + std::to_string(late - 1) + " wait";
  if (group->rank() == 0) {
    CHECK_THAT(text(), Catch::Contains(others + " for rank " + std::to_string(late) + " in sync of 'a', until ") &&
                           Catch::Contains(deadline == 60s ? "(60 s)" : "(315360000 s)"));
  } else {
    std::ifstream in(mine);
    CHECK(std::string(std::istreambuf_iterator<char>(in), {}).empty());
  }
  MPI_Barrier(MPI_COMM_WORLD);  // rank 0 has the folder
}

TEST_CASE("the environment says how long ranks wait where the program does not") {
  ::setenv("OOC_COLLECTIVE_DEADLINE", "soon", 1);
  CHECK_THROWS_WITH(mpi_group(MPI_COMM_WORLD), Catch::Contains("OOC_COLLECTIVE_DEADLINE is 'soon'"));
  ::setenv("OOC_COLLECTIVE_DEADLINE", "0.3s", 1);
  const auto group = mpi_group(MPI_COMM_WORLD);
  ::unsetenv("OOC_COLLECTIVE_DEADLINE");
  if (group->size() == 1) return;
  const int late = group->size() - 1;
  if (group->rank() == late) {
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_THROWS(group->barrier("work"));
  } else {
    CHECK_THROWS_WITH(group->barrier("work"), Catch::Contains("did not come within 300 ms"));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("what one rank refuses when a group is made all ranks refuse") {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) ::setenv("OOC_COLLECTIVE_DEADLINE", "soon", 1);
  CHECK_THROWS_WITH(mpi_group(MPI_COMM_WORLD), Catch::Contains("OOC_COLLECTIVE_DEADLINE is 'soon'"));
  ::unsetenv("OOC_COLLECTIVE_DEADLINE");
  const bool last = rank + 1 == size;
  CHECK_THROWS_WITH(mpi_group(MPI_COMM_WORLD, {.deadline = last ? -1ms : 10s}),
                    Catch::Contains("mpi_options::deadline is -1 ms"));
  CHECK_THROWS_WITH(mpi_group(MPI_COMM_WORLD, {.notice_after = last ? -1ms : 10s}),
                    Catch::Contains("mpi_options::notice_after is -1 ms"));
  CHECK_NOTHROW(all_ranks()->barrier("together again"));
}

TEST_CASE("a rank that does not come is named at the deadline") {
  const auto group = all_ranks(300ms);
  if (group->size() == 1) return;
  const int late = group->size() - 1;
  if (group->rank() == late) {
    MPI_Barrier(MPI_COMM_WORLD);  // waits elsewhere
    CHECK_THROWS_WITH(group->barrier("work"), Catch::Contains("given up waiting"));
  } else {
    CHECK_THROWS_WITH(group->barrier("work"),
                      Catch::Contains("work: rank " + std::to_string(late) + " did not come within 300 ms"));
    CHECK_THROWS_WITH(group->barrier("more"), Catch::Contains("the group failed before"));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a rank whose part ends by an exception is reported at once, long before the deadline") {
  if (all_ranks()->size() == 1) return;
  const int thrower = 1;
  try {
    const auto group = all_ranks();
    group->barrier("first");
    if (group->rank() == thrower) throw std::runtime_error("bad data");
    group->barrier("second");
    FAIL("the barrier of a rank that has left ended well");
  } catch (const io_error& e) {
    // At the deadline it would be one that did not come.
    CHECK_THAT(e.what(), Catch::Contains("second: rank 1 left"));
  } catch (const std::runtime_error& e) {
    CHECK(e.what() == std::string("bad data"));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("what is thrown that is no std::exception is an error on all ranks too") {
  const auto group = all_ranks(2s);
  const int thrower = group->size() - 1;
  CHECK_THROWS_WITH(group->together("test",
                                    [&] {
                                      if (group->rank() == thrower) throw 42;
                                      return bytes{};
                                    }),
                    Catch::Contains("no std::exception"));
  CHECK_NOTHROW(group->barrier("together again"));
}

TEST_CASE("who gave up in an earlier operation is not waited for in the next") {
  const auto group = all_ranks(2s);
  if (group->size() == 1) return;
  const int last = group->size() - 1;
  // It waits for bytes that nobody sends, where all others have nothing to wait for.
  const std::vector<std::span<const std::byte>> out(static_cast<std::size_t>(group->size()));
  std::vector<std::span<std::byte>> in(out.size());
  const auto memory = std::make_shared<bytes>(8);
  if (group->rank() == last) {
    in[0] = *memory;
    CHECK_THROWS_AS(group->exchange("exchange of 'a'", out, in, memory), io_error);
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    group->exchange("exchange of 'a'", out, in, memory);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_THROWS_WITH(group->barrier("work"),
                      Catch::Contains("work: rank " + std::to_string(last) + " gave up before") &&
                          Catch::Contains("exchange of 'a'"));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}
