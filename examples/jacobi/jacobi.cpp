// Jacobi's iteration for Laplace's equation on a plate with given edges:
//
//     b_ij = (a_(i-1)j + a_(i+1)j + a_i(j-1) + a_i(j+1)) / 4 ,   then a and b change places
//
// on n x n points, twice as many as memory need hold.  On ranks, each computes the rows of its part;
// the rows beside it, which others compute, it finds in the array after sync_halo().  plate.hpp says what
// the plate looks like after any number of iterations; the largest deviation from that is checked over
// all points.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <type_traits>
#include <utility>

#include "harness/checksum.hpp"
#include "harness/command_line.hpp"
#include "harness/picture.hpp"
#include "harness/plain_array.hpp"
#include "harness/progress_bar.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "harness/store_files.hpp"
#include "jacobi/plate.hpp"
#include "oocarray/algorithm/sweep.hpp"
#include "oocarray/commit.hpp"
#include "oocarray/ooc_array.hpp"

namespace {

template <class T>
T quarter(T sum) {
  if constexpr (std::is_integral_v<T>)
    return sum / 4;
  else
    return sum * T(0.25);
}

/// Rows first <= i < last of a rank's part.
struct rows {
  std::size_t first, last;
};

/// The program: the same for arrays in memory, mapped files and arrays out of core, on one rank or
/// many.  Returns the residual: the largest change of a point.
template <class T, class Plate>
T sweep(const Plate& a, Plate& b, std::size_t n, rows mine, examples::progress_bar& bar) {
  T residual = 0;
  for (std::size_t i = std::max<std::size_t>(mine.first, 1); i < std::min(mine.last, n - 1); ++i) {
    b[i][0] = a[i][0];  // the edges too: rows that are overwritten whole need not be read
    b[i][n - 1] = a[i][n - 1];
#pragma omp simd reduction(max : residual)
    for (std::size_t j = 1; j < n - 1; ++j) {
      const T u = quarter<T>(a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
      residual = std::max(residual, std::abs(u - a[i][j]));
      b[i][j] = u;
    }
    bar.step();
  }
  return residual;
}

/// The same iterations, several in one pass over the plate (--fuse).  An even number is done in place, so
/// that the result is where the loop has it.
template <class Plate>
ooc::sweep_result<typename Plate::value_type> fused_sweeps(Plate& a, Plate& b, std::size_t iterations,
                                                           std::size_t fuse) {
  using T = typename Plate::value_type;
  const auto jacobi = ooc::stencil({1, 1}, [](auto& out, const auto& in) {
                        const auto above = in[-1], here = in[0], below = in[1];
                        const auto next = out.template get<0>();
                        T residual = 0;
#pragma omp simd reduction(max : residual)
                        for (std::ptrdiff_t j = out.lower(1); j < out.upper(1); ++j) {
                          const T u = quarter<T>(above[j] + below[j] + here[j - 1] + here[j + 1]);
                          residual = std::max(residual, std::abs(u - here[j]));
                          next[j] = u;
                        }
                        return residual;
                      }).reduce(T{0}, [](T x, T y) { return std::max(x, y); });
  // The program notes itself what a run that is cut short leaves behind.
  const ooc::sweep_options options{.fuse = fuse, .mark = false};
  return iterations % 2 == 0 ? ooc::sweep(a, iterations, jacobi, options)
                             : ooc::sweep(std::as_const(a), b, iterations, jacobi, options);
}

/// Where an earlier run with --keep has left off; `--stage compute` goes on from there.
struct progress {
  std::uint64_t done = 0;  ///< iterations that the plates have behind them
  std::uint64_t planned;   ///< for which they were made: integers are exact for so many
};

/// Of plates in the middle of an iteration: neither of them is that of a certain one.
constexpr std::uint64_t in_between = ~std::uint64_t{0};

struct options : examples::common_options {
  bool no_overwrite = false;
  bool durable = false;
  std::uint64_t commit_every = 0;     ///< iterations; 0: no commits
  std::optional<std::uint64_t> fuse;  ///< steps in one pass; 0: the library chooses; none: the plain loop
  std::string placement = "striped";
  std::string picture;
};

/// Both plates begin with the right edges, which no sweep changes.
template <class Exact, class Plate>
void start(const Exact& exact, Plate& a, Plate& b, std::size_t n, rows mine, examples::progress_bar& bar) {
  for (std::size_t i = mine.first; i < mine.last; ++i) {
    for (std::size_t j = 0; j < n; ++j) b[i][j] = a[i][j] = exact(i, j);
    bar.step();
  }
}

struct checked {
  double error = 0;     ///< largest
  double checksum = 0;  ///< of all bits
};

template <class Exact, class Plate>
checked check(const Exact& exact, const Plate& a, std::size_t n, rows mine, examples::progress_bar& bar) {
  checked c;
  for (std::size_t i = mine.first; i < mine.last; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      c.error = std::max(c.error, std::abs(static_cast<double>(a[i][j]) - exact(i, j)));
    c.checksum += examples::row_checksum(i, &a[i][0], n);
    bar.step();
  }
  return c;
}

/// `load` is called between start and iterations (rivals), `promise` before every sweep, `commit` after it, with the
/// iterations done since the start, `store` at the end: it returns when the plate is in its file or, with --durable, on
/// its disks.  `begun` says how
/// many iterations the plates have behind them, and `a` is the one that the last of them wrote.
template <class Exact, class Plate, class Load, class Promise, class Commit, class Store>
int solve(Plate* a, Plate* b, const options& o, progress begun, examples::report& r, const examples::ranks& all,
          Load load, Promise promise, Commit commit, Store store) {
  using T = typename Exact::value_type;
  const std::size_t n = o.size;
  const auto [first, last] = a->local_rows();
  const rows mine{first, last};
  Exact exact(n, begun.planned);
  if (o.creates())
    r.phase("create", [&] {
      examples::progress_bar bar("creating", mine.last - mine.first, 2 * n * sizeof(T), o.quiet);
      start(exact, *a, *b, n, mine, bar);
      a->sync();
      b->sync();
      commit(0);
    });
  if (!o.computes()) return r.finish_without_result();
  load();
  r.phase("compute", [&] {
    if constexpr (requires { a->core(); }) {
      if (o.fuse) {
        const auto done = fused_sweeps(*a, *b, o.iterations, *o.fuse);
        if (o.iterations % 2 != 0) std::swap(a, b);
        std::printf("iteration %4llu   residual %.6e   %zu passes of %zu\n",
                    static_cast<unsigned long long>(o.iterations), static_cast<double>(done.values.back()), done.passes,
                    done.fuse);
        r.set("residual", static_cast<double>(done.values.back()));
        r.set("passes", std::uint64_t{done.passes});
        return;
      }
    }
    examples::progress_bar bar("iterating", (mine.last - mine.first) * o.iterations, 2 * n * sizeof(T), o.quiet);
    for (std::uint64_t k = 1; k <= o.iterations; ++k) {
      promise(*b);
      const T change = sweep<T>(std::as_const(*a), *b, n, mine, bar);
      b->sync_halo();  // first, as it sleeps while others compute, and a reduction may not
      const double residual = all.max(static_cast<double>(change));
      std::swap(a, b);
      commit(k);
      bar.make_way();
      std::printf("iteration %4llu   residual %.6e\n", static_cast<unsigned long long>(k), residual);
      r.set("residual", residual);
    }
  });
  r.phase("store", [&] { store(*a); });
  const std::uint64_t done = begun.done + o.iterations;
  exact.set_iteration(done);
  const checked found = r.phase("check", [&] {
    examples::progress_bar bar("checking", mine.last - mine.first, n * sizeof(T), o.quiet);
    const checked part = check(exact, std::as_const(*a), n, mine, bar);
    return checked{all.max(part.error), all.sum(part.checksum)};
  });
  const double error = found.error;
  if (!o.picture.empty() && all.leads()) jacobi::write_picture(o.picture, std::as_const(*a), n);

  const double bytes = 2.0 * sizeof(T) * static_cast<double>(n) * static_cast<double>(n);
  r.rate("compute", bytes * static_cast<double>(o.iterations));
  r.set("elements", std::uint64_t{2} * n * n);
  r.set("bytes", static_cast<std::uint64_t>(bytes));
  r.set("n", std::uint64_t{n});
  r.set("iterations", o.iterations);
  r.set("error", error);
  r.set("checksum", found.checksum);
  std::printf("n = %zu, largest error %.3e (rounding allows %.3e)\n", n, error, exact.tolerance(done));
  return r.finish(error <= exact.tolerance(done));
}

template <class Exact>
int out_of_core(const options& o, const examples::ranks& all) {
  using T = typename Exact::value_type;
  ooc::runtime rt{{.memory = o.memory}};
  examples::report r("jacobi", o.json, &rt, all);
  const ooc::store store = o.open_store(all);
  examples::store_files files(store, o, all);
  const std::size_t n = o.size;
  const bool by_rank = o.placement == "rank" && all.size() > 1;
  const ooc::array_options<T> options{.placement = by_rank ? ooc::placement::by_rank : ooc::placement::striped,
                                      .commits = o.commit_every != 0,
                                      .group = all.group(),
                                      .owner_computes = all.size() > 1};
  using plate = ooc::ooc_array<T, 2>;
  plate a = files.array<T, 2>(rt, "jacobi.a", {n, n}, options);
  plate b = files.array<T, 2>(rt, "jacobi.b", {n, n}, options);
  if (o.creates()) {
    a.overwrite({{0, 0}, {n, n}});
    b.overwrite({{0, 0}, {n, n}});
  }
  const auto promise = [&](plate& target) {
    if (!o.no_overwrite) target.overwrite({{1, 0}, {n - 1, n}});
  };
  constexpr const char* first = "jacobi.a";
  const progress begun{o.creates() ? 0 : files.number(first, "iterations", 0),
                       o.creates() ? o.iterations : files.number(first, "planned", o.iterations)};
  if (begun.done == in_between)
    throw examples::bad_option(
        "--stage compute: an earlier run was cut short in the middle of its iterations; begin anew "
        "with --stage create");
  if (o.computes() && o.type == "i4" && begun.done + o.iterations > begun.planned)
    throw examples::bad_option("--iterations " + std::to_string(o.iterations) +
                               ": the plates were made "
                               "for " +
                               std::to_string(begun.planned) + " with --type i4, and have " +
                               std::to_string(begun.done) +
                               " behind them; begin anew with --stage "
                               "create, or use --type f8");
  all.barrier();  // all have read it
  const bool commits = o.commit_every != 0;
  const auto commit = [&](std::uint64_t since) {
    if (!commits || (since % o.commit_every != 0 && since != o.iterations)) return;
    if (all.leads()) a.set_attribute("iterations", std::to_string(begun.done + since));
    ooc::commit({&a, &b}, {{"iterations", std::to_string(begun.done + since)}});
  };
  if (commits) {
    if (o.creates() && all.leads()) a.set_attribute("planned", std::to_string(begun.planned));
  } else if (o.keeps() || !o.creates()) {
    files.leave(first, "planned", begun.planned);
    files.leave(first, "iterations", o.computes() ? in_between : 0);
  }
  plate *now = &a, *next = &b;
  if (begun.done % 2 != 0) std::swap(now, next);
  const int status = solve<Exact>(
      now, next, o, begun, r, all, [] {}, promise, commit,
      [&](plate& result) { result.sync(o.durable ? ooc::durable : ooc::durability::acknowledged); });
  if (o.keeps() && o.computes() && !commits) {
    all.barrier();
    try {
      files.leave(first, "iterations", begun.done + o.iterations);
    } catch (const ooc::io_error& e) {
      // The result is there and right; who would go on from it is told to begin anew.
      std::fprintf(stderr, "jacobi: a later --stage compute cannot go on from here: %s\n", e.what());
    }
  }
  return status;
}

template <class Exact>
int plain(const options& o, const examples::ranks& all) {
  using T = typename Exact::value_type;
  examples::report r("jacobi", o.json, nullptr, all);
  const examples::rival_folder folder(o, "jacobi", all);
  const std::size_t n = o.size;
  using plate = examples::plain_array<T, 2>;
  const auto map = [&](const char* name) { return plate(folder.map(name, n * n * sizeof(T)), {n, n}, all); };
  plate a = map("a"), b = map("b");
  const auto load = [&] {
    if (o.vm != "anonymous") return;
    r.phase("load", [&] {
      a = plate::read_from(folder / "a", {n, n}, all);
      b = plate::read_from(folder / "b", {n, n}, all);
    });
  };
  return solve<Exact>(
      &a, &b, o, {0, o.iterations}, r, all, load, [](plate&) {}, [](std::uint64_t) {},
      [&](plate& result) {
        if (o.durable) result.writeback();
      });
}

template <class Exact>
int run_with(const options& o, const examples::ranks& all) {
  return o.vm == "none" ? out_of_core<Exact>(o, all) : plain<Exact>(o, all);
}

}  // namespace

int main(int count, char** arguments) {
  return examples::run("jacobi", count, arguments, [](int argc, char** argv, const examples::ranks& all) {
    options o;
    o.size = 2048;
    o.iterations = 10;
    examples::command_line c("jacobi", "Laplace's equation on an n x n plate by Jacobi's iteration.");
    c.count("size", o.size, 4, 1 << 22, "n, points on a side");
    c.count("iterations", o.iterations, 1, 1'000'000, "iterations");
    c.choice("type", o.type, {"f8", "i4"}, "doubles, or the papers' integers");
    c.flag("durable", o.durable, "end when the result would survive a loss of power");
    c.flag("no-overwrite", o.no_overwrite, "do not promise that a sweep overwrites its target");
    c.choice("placement", o.placement, {"striped", "rank"},
             "on ranks: every part over all nodes, or on a node of the rank's host");
    c.text("picture", o.picture, "write the plate at the end as a PNG, at most 1024 points wide");
    std::string fuse;
    c.text("fuse", fuse, "compute so many iterations in one pass over the plate; 0: as many as fit");
    c.count("commit-every", o.commit_every, 0, 1'000'000,
            "commit both plates after so many iterations: a run with --keep that is killed goes on from there with "
            "--stage compute");
    o.add_to(c);
    if (!c.parse(argc, argv)) return 0;
    if (!fuse.empty()) o.fuse = examples::parse_quantity("fuse", fuse, false);
    if (o.fuse && o.vm != "none")
      throw examples::bad_option("--fuse " + fuse + " with --vm " + o.vm +
                                 ": rivals run the plain loop; leave out one of the two");
    if (o.commit_every != 0 && (o.fuse || o.vm != "none"))
      throw examples::bad_option("--commit-every " + std::to_string(o.commit_every) + " with --" +
                                 (o.fuse ? "fuse" : "vm") + ": only the plain loop commits; leave out one of the two");
    o.quiet = o.quiet || !all.leads();
    if (o.type == "f8") return run_with<jacobi::heated_plate>(o, all);
    if (o.iterations > jacobi::integer_plate::max_iterations)
      throw examples::bad_option("--iterations " + std::to_string(o.iterations) +
                                 " with --type i4: the known answer is exact for at most " +
                                 std::to_string(jacobi::integer_plate::max_iterations) + "; use fewer, or --type f8");
    o.size = jacobi::integer_plate::size_for(o.size);
    return run_with<jacobi::integer_plate>(o, all);
  });
}
