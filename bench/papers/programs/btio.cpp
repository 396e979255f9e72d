// A flow solver's output as in BTIO: p x p ranks append a solution array to a file in every step.
//
//     mpirun -n P*P ... btio URL PREFIX N STEPS
//
// The array has N^3 points of 5 doubles.  It is cut into p^3 cells, of which rank (i, j) has p, one
// in each layer k: (k, (i + k) mod p, (j + k) mod p), the diagonal multi-partition.  In each step
// the ranks write it in three ways, each to a new file whose name begins with PREFIX:
//
//     collective     all cells of all ranks by one collective call
//     independent    each rank its cells by one request, without the others
//     contiguous     each rank as many bytes in one piece: the limit
//
// and then read every step in the same ways, and collectively by slabs of the first dimension,
// another partition.  Rank 0 prints "write|read WAY STEP SECONDS" for each, from the first rank's
// start to the last one's end.  All that is read is compared with what belongs there.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "clock.hpp"
#include "oocarray/file.hpp"
#include "oocarray/mpi.hpp"

namespace {

constexpr std::uint64_t components = 5;
constexpr std::uint64_t point = components * sizeof(double);

/// Points [first, last) of one dimension.
struct interval {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t size() const { return last - first; }
};

struct cell {
  interval z, y, x;
  std::uint64_t bytes() const { return z.size() * y.size() * x.size() * point; }
};

interval part(std::uint64_t n, std::uint64_t parts, std::uint64_t i) { return {n * i / parts, n * (i + 1) / parts}; }

/// The part of the array that one rank has.
using cells = std::vector<cell>;

std::uint64_t bytes(const cells& all) {
  std::uint64_t sum = 0;
  for (const cell& c : all) sum += c.bytes();
  return sum;
}

cells multi_partition(std::uint64_t n, std::uint64_t p, std::uint64_t rank) {
  cells mine;
  for (std::uint64_t k = 0; k < p; ++k)
    mine.push_back({part(n, p, k), part(n, p, (rank / p + k) % p), part(n, p, (rank % p + k) % p)});
  return mine;
}

/// The cells in the file at `base`, packed in memory one after the other.
ooc::request request_for(std::uint64_t n, const cells& mine, std::uint64_t base) {
  ooc::request r;
  std::uint64_t memory = 0;
  for (const cell& c : mine) {
    ooc::nested_request one;
    one.file_offset = base + ((c.z.first * n + c.y.first) * n + c.x.first) * point;
    one.memory_offset = memory;
    one.run = c.x.size() * point;
    one.depth = 2;
    one.levels[0] = {c.z.size(), n * n * point, c.y.size() * one.run};
    one.levels[1] = {c.y.size(), n * point, one.run};
    r.add(one);
    memory += c.bytes();
  }
  return r;
}

/// Calls f(index in memory, value that belongs there) for everything in the cells.
template <class F>
void each_value(std::uint64_t n, const cells& mine, std::uint64_t step, F&& f) {
  std::size_t i = 0;
  for (const cell& c : mine)
    for (std::uint64_t z = c.z.first; z < c.z.last; ++z)
      for (std::uint64_t y = c.y.first; y < c.y.last; ++y)
        for (std::uint64_t x = c.x.first; x < c.x.last; ++x)
          for (std::uint64_t m = 0; m < components; ++m)
            f(i++, static_cast<double>((((step * n + z) * n + y) * n + x) * components + m));
}

class solver {
 public:
  solver(const std::string& url, std::string prefix, std::uint64_t n, std::uint64_t steps)
      : world_(ooc::mpi_group(MPI_COMM_WORLD)),
        rank_(static_cast<std::uint64_t>(world_->rank())),
        ranks_(static_cast<std::uint64_t>(world_->size())),
        n_(n),
        steps_(steps),
        store_(ooc::store::open(url)),
        prefix_(std::move(prefix)) {
    const auto p = static_cast<std::uint64_t>(std::lround(std::sqrt(ranks_)));
    if (p * p != ranks_) throw std::runtime_error("the number of ranks must be a square");
    mine_ = multi_partition(n, p, rank_);
    for (std::uint64_t r = 0; r < rank_; ++r) before_ += bytes(multi_partition(n, p, r));
    data_.resize(bytes(mine_) / sizeof(double));
  }

  void run() {
    ooc::file together = shared_file("collective");
    ooc::file alone = shared_file("independent");
    ooc::file whole = shared_file("contiguous");
    const auto in = std::as_bytes(std::span(data_));
    for (std::uint64_t s = 0; s < steps_; ++s) {
      each_value(n_, mine_, s, [&](std::size_t i, double value) { data_[i] = value; });
      const ooc::request r = request_for(n_, mine_, s * array());
      timed("write", "collective", s, [&] { together.write_all(*world_, r, in); });
      timed("write", "independent", s, [&] { alone.write(r, in); });
      timed("write", "contiguous", s, [&] { whole.write_at(s * array() + before_, in); });
    }
    for (std::uint64_t s = 0; s < steps_; ++s) {
      const ooc::request r = request_for(n_, mine_, s * array());
      read("collective", s, mine_, [&](auto out) { together.read_all(*world_, r, out); });
      read("independent", s, mine_, [&](auto out) { alone.read(r, out); });
      read("contiguous", s, mine_, [&](auto out) {
        if (whole.read_at(s * array() + before_, out) != out.size()) throw std::runtime_error("the file is too short");
      });
      const cells slab{{part(n_, ranks_, rank_), {0, n_}, {0, n_}}};
      const ooc::request contiguous = request_for(n_, slab, s * array());
      read("slabs", s, slab, [&](auto out) { together.read_all(*world_, contiguous, out); });
    }
  }

 private:
  std::uint64_t array() const { return n_ * n_ * n_ * point; }

  ooc::file shared_file(const std::string& name) {
    const std::string path = prefix_ + name;
    std::optional<ooc::file> file;
    if (rank_ == 0) file = ooc::file::create(store_, path, {.striping = {0, 0, 64 * 1024}});
    MPI_Barrier(MPI_COMM_WORLD);
    if (!file) file = ooc::file::open(store_, path, ooc::file_access::read_write);
    return std::move(*file);
  }

  /// Processes of a machine share the clock, and all ranks are on one.
  template <class F>
  void timed(const char* what, const char* how, std::uint64_t step, F&& f) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = papers::now();
    f();
    const double end = papers::now();
    double first = 0;
    double last = 0;
    MPI_Reduce(&begin, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank_ == 0) std::printf("%s %s %llu %.6f\n", what, how, static_cast<unsigned long long>(step), last - first);
  }

  template <class F>
  void read(const char* how, std::uint64_t step, const cells& where, F&& f) {
    std::vector<double> found(bytes(where) / sizeof(double), -1);
    timed("read", how, step, [&] { f(std::as_writable_bytes(std::span(found))); });
    each_value(n_, where, step, [&](std::size_t i, double value) {
      if (found[i] != value)
        throw std::runtime_error(std::string("wrong data: ") + how + ", step " + std::to_string(step) + ", value " +
                                 std::to_string(i));
    });
  }

  std::shared_ptr<ooc::process_group> world_;
  std::uint64_t rank_, ranks_, n_, steps_;
  ooc::store store_;
  std::string prefix_;
  cells mine_;
  std::uint64_t before_ = 0;  ///< bytes of the ranks before this one
  std::vector<double> data_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    if (argc != 5) throw std::runtime_error("give URL PREFIX N STEPS");
    solver(argv[1], argv[2], std::stoull(argv[3]), std::stoull(argv[4])).run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "btio: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
