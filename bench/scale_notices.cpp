// What a sync() costs where many ranks tell each other what they have written.  The ranks are processes of this machine
// that leave their messages in memory which all of them share, so what remains is what each rank does itself, and with
// the notices of all others.
//
//     sync_<R>_us         processor time of a rank for a sync() of R ranks, each of which has written its rows
//     sync_<R>_bytes      that a rank is told in it
//     sync_<R>_rank_kib   memory of a rank with its array and a budget of 2 MiB, as the system shares it out (PSS)
#include "scale_notices.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "oocarray/ooc_array.hpp"
#include "oocarray/store.hpp"
#include "oocarray/units.hpp"

namespace bench {
namespace {

using namespace ooc::literals;

constexpr int most_ranks = 1000;
constexpr std::size_t rows_of_each = 8, columns = 512;  // a block of 4 KiB a row
constexpr unsigned syncs = 5;

/// The place where ranks leave what they tell the others.
struct message_board {
  pthread_barrier_t meeting;
  std::atomic<bool> failed{false};
  std::atomic<std::uint64_t> told{0}, processor_us{0}, kib{0};
  char why[400] = {};
  struct message {
    std::uint32_t size = 0;
    std::byte bytes[4092];
  } messages[most_ranks];
};

class ranks_of_board final : public ooc::process_group {
 public:
  ranks_of_board(message_board& b, int rank, int size) : board_(b), rank_(rank), size_(size) {}

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  void barrier(std::string_view) override { ::pthread_barrier_wait(&board_.meeting); }
  bytes broadcast(std::string_view call, std::span<const std::byte> mine, int root) override {
    return all_gather(call, mine)[static_cast<std::size_t>(root)];
  }
  std::vector<bytes> all_gather(std::string_view call, std::span<const std::byte> mine) override {
    message_board::message& m = board_.messages[rank_];
    if (mine.size() > sizeof m.bytes) throw std::logic_error("scale: a message is longer than there is room for");
    m.size = static_cast<std::uint32_t>(mine.size());
    if (!mine.empty()) std::memcpy(m.bytes, mine.data(), mine.size());
    barrier(call);
    std::vector<bytes> all;
    for (int r = 0; r < size_; ++r) {
      const message_board::message& one = board_.messages[r];
      all.emplace_back(one.bytes, one.bytes + one.size);
      told_ += one.size;
    }
    barrier(call);
    return all;
  }
  void all_reduce(std::string_view call, std::span<std::uint64_t> values, ooc::reduction how) override {
    const std::vector<bytes> told = all_gather(call, std::as_bytes(values));
    for (std::size_t i = 0; i < values.size(); ++i)
      for (std::size_t r = 0; r < told.size(); ++r) {
        const auto other = reinterpret_cast<const std::uint64_t*>(told[r].data())[i];
        std::uint64_t& v = values[i];
        v = r == 0                       ? other
            : how == ooc::reduction::sum ? v + other
            : how == ooc::reduction::max ? std::max(v, other)
                                         : std::min(v, other);
      }
  }
  void exchange(std::string_view, std::span<const std::span<const std::byte>>, std::span<const std::span<std::byte>>,
                std::shared_ptr<const void>) override {
    throw std::logic_error("scale: no rank sends elements to another");
  }
  std::uint64_t told() const noexcept { return told_; }

 private:
  message_board& board_;
  const int rank_, size_;
  std::uint64_t told_ = 0;
};

std::uint64_t processor_us() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  const auto us = [](const timeval& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_usec);
  };
  return us(u.ru_utime) + us(u.ru_stime);
}

std::uint64_t memory_kib() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("Pss:")) return std::stoull(line.substr(4));
  return 0;
}

void be_rank(message_board& b, const std::filesystem::path& folder, int rank, int ranks) {
  const auto group = std::make_shared<ranks_of_board>(b, rank, ranks);
  ooc::runtime rt({.memory = 2_MiB});
  const auto store = ooc::store::open("local:" + folder.string(), {.workers = 1, .staging = 64_KiB});
  ooc::ooc_array<double, 2> a(rt, store, "a", ooc::create, {rows_of_each * static_cast<std::size_t>(ranks), columns},
                              {.block = columns * sizeof(double), .replace = true, .group = group});
  const auto [first, last] = a.local_rows();
  std::uint64_t us = 0, told = 0;
  for (unsigned n = 0; n <= syncs; ++n) {
    for (std::size_t i = first; i < last; ++i) a[i][n] = n + 1.0;
    group->barrier("written");
    const std::uint64_t begin = processor_us(), before = group->told();
    a.sync();
    if (n != 0) us += processor_us() - begin, told += group->told() - before;  // the first is to warm up
    // What the rank before has written is there.
    if (first != 0 && std::as_const(a)[first - 1][n] != n + 1.0)
      throw std::runtime_error("scale: sync() has lost a row");
    group->barrier("read");
  }
  b.processor_us += us;
  b.told += told;
  b.kib += memory_kib();
  group->barrier("measured");
}

json measure(const std::filesystem::path& folder, int ranks) {
  void* const at = ::mmap(nullptr, sizeof(message_board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  message_board& b = *new (at) message_board;
  pthread_barrierattr_t shared;
  ::pthread_barrierattr_init(&shared);
  ::pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  ::pthread_barrier_init(&b.meeting, &shared, static_cast<unsigned>(ranks));
  std::vector<pid_t> all;
  for (int r = 0; r < ranks; ++r) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        be_rank(b, folder, r, ranks);
      } catch (const std::exception& e) {  // the others wait at the barrier
        if (!b.failed.exchange(true)) std::snprintf(b.why, sizeof b.why, "%s", e.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    all.push_back(pid);
  }
  for (std::size_t ended = 0; ended < all.size(); ++ended) {
    int status = 0;
    if (::wait(&status) >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    for (const pid_t pid : all) ::kill(pid, SIGKILL);
    while (::wait(nullptr) > 0) continue;
    throw std::runtime_error(std::string("scale: a rank has failed: ") + b.why);
  }
  const double of_each = 1.0 / ranks / syncs;
  json out{{"us", static_cast<double>(b.processor_us) * of_each},
           {"bytes", static_cast<double>(b.told) * of_each},
           {"rank_kib", static_cast<double>(b.kib) / ranks}};
  ::munmap(at, sizeof(message_board));
  return out;
}

}  // namespace

void measure_notices(const options& o, json& out) {
  for (const int ranks : {10, 100, 300, most_ranks}) {
    const json m = measure(o.dir / "ranks", ranks);
    for (const auto& [name, value] : m.items()) out["sync_" + std::to_string(ranks) + "_" + name] = value;
    std::fprintf(stderr, "  sync() of %4d ranks: each %8.0f us of a processor, %8.0f bytes told\n", ranks,
                 m["us"].get<double>(), m["bytes"].get<double>());
  }
}

}  // namespace bench
