// The out-of-core linear solver of the 1998 paper:
//
//     A x = b ,   A a dense complex M x M matrix in m x m blocks of n x n elements
//
// by block Gauss-Seidel (solver.hpp).  A and the inverses of its diagonal blocks are files of the
// store, read by block coordinates through the block layer; x and b stay in memory.  What is held in
// memory of the files is n * n * 16 bytes times the blocks of one superblock of each, times the
// superblocks that the budget allows, whatever M is.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "gauss_seidel/block_matrix.hpp"
#include "gauss_seidel/solver.hpp"
#include "harness/checksum.hpp"
#include "harness/command_line.hpp"
#include "harness/plain_array.hpp"
#include "harness/progress_bar.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "harness/store_files.hpp"
#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"

namespace {

using namespace gauss_seidel;

struct options : examples::common_options {
  std::uint64_t blocks = 64;
  std::uint64_t group = 1;
  std::uint64_t seed = 1998;
  std::string bf_a = "64,1";
  std::string bf_inv = "64,1";
  std::uint64_t stripe = 0;
  double tolerance = 0;
};

/// "64,1": the papers' buffer factors, dimension 1 (along a row) first.
std::vector<std::uint64_t> factors(const char* option, const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos)
    throw examples::bad_option("--" + std::string(option) + " " + text +
                               ": give two buffer factors such as 64,1, along a row first");
  std::vector<std::uint64_t> bf;
  for (const std::string& part : {text.substr(0, comma), text.substr(comma + 1)}) {
    bf.push_back(examples::parse_quantity(option, part, false));
    if (bf.back() == 0)
      throw examples::bad_option("--" + std::string(option) + " " + text + ": a buffer factor is at least 1");
  }
  return bf;
}

/// Bytes of a row of blocks.
std::uint64_t row_bytes(const partition& p) { return p.m * p.n * p.n * sizeof(complex); }

struct created {
  vector b;                ///< A x; the rows of this rank
  double contraction = 0;  ///< what an iteration leaves of the largest error, at most
};

/// Fills A by rows of blocks; `rows` has one block a row.
template <class Rows>
created create_system(const linear_system& system, Rows& rows, const partition& p, const share_of_rows& share,
                      bool quiet) {
  examples::progress_bar bar("creating", share.count(), row_bytes(p), quiet);
  const vector x = system.known();
  created c;
  c.b.resize(x.size());
  for (std::uint64_t i = 0; i < p.m; ++i) {
    if (!share.mine(i)) continue;
    auto row = rows.block_to_write(0, i);
    const double off_diagonal = system.fill(i * p.n, *row);
    c.contraction = std::max(c.contraction, off_diagonal / system.diagonal());
    c.b.segment(static_cast<Eigen::Index>(i * p.n), static_cast<Eigen::Index>(p.n)).noalias() = *row * x;
    bar.step();
  }
  rows.writeback();
  c.contraction = share.ranks().max(c.contraction);
  return c;
}

/// The same where A is there already: makes one row of blocks at a time, in memory, and reads nothing.
created recall_system(const linear_system& system, const partition& p, const share_of_rows& share, bool quiet) {
  struct scratch_row {
    std::vector<complex> elements;
    std::uint64_t n, width;
    auto block_to_write(std::uint64_t, std::uint64_t) {
      return plain_matrix(elements.data(), width, width, n).block_to_write(0, 0);
    }
    void writeback() {}
  } row{std::vector<complex>(p.n * system.order()), p.n, system.order()};
  return create_system(system, row, p, share, quiet);
}

template <class Matrix, class Inverses>
void invert(Matrix& a, Inverses& inverses, const partition& p, const share_of_rows& rows, const options& o,
            examples::report& r) {
  r.phase("invert", [&] {
    examples::progress_bar bar("inverting", rows.count(), 2 * p.n * p.n * sizeof(complex), o.quiet);
    invert_diagonal(a, inverses, p, rows, bar);
    inverses.writeback();
  });
}

template <class Matrix, class Inverses>
int solve(Matrix& a, Inverses& inverses, const linear_system& system, const created& c, const partition& p,
          const share_of_rows& rows, const options& o, examples::report& r) {
  const vector& b = c.b;
  vector x = vector::Zero(b.size());
  std::uint64_t done = 0;
  r.phase("compute", [&] {
    examples::progress_bar bar("iterating", rows.count() * o.iterations, row_bytes(p), o.quiet);
    double rms = 0;
    do {
      rms = sweep(a, inverses, b, x, p, rows, bar);
      bar.make_way();
      std::printf("iteration %4llu   residual %.6e\n", static_cast<unsigned long long>(++done), rms);
    } while (done < o.iterations && rms > o.tolerance);
  });
  const double rms = r.phase("check", [&] {
    examples::progress_bar bar("checking", rows.count(), row_bytes(p), o.quiet);
    return rms_residual(a, b, x, p, rows, bar);
  });
  const vector known = system.known();
  const double largest = known.cwiseAbs().maxCoeff();
  const double error = (x - known).cwiseAbs().maxCoeff() / largest;
  const double bound = std::pow(c.contraction, static_cast<double>(done)) + 1e-12;

  const double bytes = 16.0 * static_cast<double>(system.order()) * static_cast<double>(system.order());
  r.rate("compute", bytes * static_cast<double>(done));
  r.set("elements", system.order() * system.order());
  r.set("bytes", static_cast<std::uint64_t>(bytes));
  r.set("iterations", done);
  r.set("group", p.group);
  r.set("residual", rms);
  r.set("error", error);
  r.set("checksum",
        examples::row_checksum(0, reinterpret_cast<const double*>(x.data()), 2 * static_cast<std::size_t>(x.size())));
  std::printf("M = %llu: RMS of Ax - b %.3e, largest error %.3e of the answer (theory allows %.3e)\n",
              static_cast<unsigned long long>(system.order()), rms, error, bound);
  const bool converged = o.tolerance == 0 || rms <= o.tolerance;
  if (!converged)
    std::printf("not below --tolerance %g after %llu iterations\n", o.tolerance, static_cast<unsigned long long>(done));
  return r.finish(error <= bound && converged);
}

/// A new file of blocks: made by rank 0, open on all.
ooc::block_file make(ooc::runtime& rt, const ooc::store& store, const char* path, const ooc::blocking& shape,
                     ooc::block_file_options o, const examples::ranks& all) {
  o.shared = all.size() > 1;
  if (!all.leads()) all.barrier();  // until it is there
  ooc::block_file f = all.leads() ? ooc::block_file::create(rt, store, path, shape, o)
                                  : ooc::block_file::open(rt, store, path, shape, o);
  if (all.leads()) all.barrier();
  return f;
}

int out_of_core(const linear_system& system, const partition& p, const options& o, const examples::ranks& all) {
  const share_of_rows share(p, all);
  const ooc::blocking blocks{.rs = sizeof(complex), .ne = {p.n, p.n}, .nb = {p.m, p.m}, .bf = factors("bf-a", o.bf_a)};
  const ooc::blocking inverse_blocks{
      .rs = sizeof(complex), .ne = {p.n, p.n}, .nb = {p.m, 1}, .bf = factors("bf-inv", o.bf_inv)};
  ooc::runtime rt{{.memory = o.memory}};
  examples::report r("gauss_seidel", o.json, &rt, all);
  const ooc::store store = o.open_store(all);
  examples::store_files files(store, o, all);
  ooc::block_file_options complex_elements;
  complex_elements.element_type = "c16";
  complex_elements.striping.sf = o.stripe;

  // One file, described in three ways: whole rows of blocks, each written without being read; single
  // blocks, to read nothing but the diagonal; and superblocks, for the iterations.
  const char* const path = o.creates() ? files.fresh("gauss_seidel.a") : files.note("gauss_seidel.a");
  const created c = r.phase(o.creates() ? "create" : "recall", [&] {
    if (!o.creates()) return recall_system(system, p, share, o.quiet);
    ooc_matrix rows(make(rt, store, path, {.rs = sizeof(complex), .ne = {p.n * p.m, p.n}, .nb = {1, p.m}, .bf = {}},
                         complex_elements, all));
    return create_system(system, rows, p, share, o.quiet);
  });
  if (!o.computes()) return r.finish_without_result();
  ooc_matrix inverses(make(rt, store, files.fresh("gauss_seidel.inverses"), inverse_blocks, complex_elements, all));
  {
    ooc_matrix single(ooc::block_file::open_read_only(rt, store, path,
                                                      {.rs = blocks.rs, .ne = blocks.ne, .nb = blocks.nb, .bf = {}}));
    invert(single, inverses, p, share, o, r);
  }
  ooc_matrix a(ooc::block_file::open_read_only(rt, store, path, blocks));
  return solve(a, inverses, system, c, p, share, o, r);
}

int plain(const linear_system& system, const partition& p, const options& o, const examples::ranks& all) {
  const share_of_rows share(p, all);
  examples::report r("gauss_seidel", o.json, nullptr, all);
  const examples::rival_folder folder(o, "gauss_seidel", all);
  const std::uint64_t order = system.order();
  auto memory = folder.map("a", order * order * sizeof(complex));
  const created c = r.phase(o.creates() ? "create" : "recall", [&] {
    if (!o.creates()) return recall_system(system, p, share, o.quiet);
    plain_matrix rows(reinterpret_cast<complex*>(memory.data()), order, order, p.n);
    created product = create_system(system, rows, p, share, o.quiet);
    memory.writeback();
    return product;
  });
  if (!o.computes()) return r.finish_without_result();
  if (o.vm == "anonymous")
    r.phase("load",
            [&] { memory = examples::plain_memory::read_from(folder / "a", share.bytes_of(row_bytes(p)), all); });
  plain_matrix a(reinterpret_cast<complex*>(memory.data()), order, p.n, p.n);
  std::vector<complex> inverse_memory(p.n * order);
  plain_matrix inverses(inverse_memory.data(), order, p.n, p.n);
  invert(a, inverses, p, share, o, r);
  return solve(a, inverses, system, c, p, share, o, r);
}

}  // namespace

int main(int count, char** arguments) {
  return examples::run("gauss_seidel", count, arguments, [](int argc, char** argv, const examples::ranks& all) {
    options o;
    o.size = 2048;
    o.iterations = 10;
    examples::command_line c("gauss_seidel", "A dense complex system A x = b out of core, by block Gauss-Seidel.");
    c.count("size", o.size, 1, 1 << 24, "M, the order of A; a multiple of --blocks");
    c.count("blocks", o.blocks, 1, 1 << 16, "m: A is cut into m x m blocks");
    c.count("iterations", o.iterations, 1, 1'000'000, "iterations, at most");
    c.real("tolerance", o.tolerance, 0, 1e300, "end when the RMS of Ax - b is below this; 0: never");
    c.count("group", o.group, 1, 1 << 16, "block rows updated together");
    c.count("seed", o.seed, 0, (std::uint64_t{1} << 63) - 1, "of the matrix");
    c.text("bf-a", o.bf_a, "superblock of A in blocks, along a row first");
    c.text("bf-inv", o.bf_inv, "superblock of the inverses");
    c.bytes("stripe", o.stripe, 0, "stripe of both files, a multiple of 4K; 0: one that deals superblocks out evenly");
    o.add_to(c);
    if (!c.parse(argc, argv)) return 0;
    if (o.size % o.blocks != 0)
      throw examples::bad_option("--size " + std::to_string(o.size) + ": not a multiple of --blocks " +
                                 std::to_string(o.blocks) + "; try " +
                                 std::to_string((o.size / o.blocks + 1) * o.blocks));
    const linear_system system(o.size, o.seed);
    const partition p{o.blocks, o.size / o.blocks, o.group};
    factors("bf-a", o.bf_a);
    factors("bf-inv", o.bf_inv);
    o.quiet = o.quiet || !all.leads();
    return o.vm == "none" ? out_of_core(system, p, o, all) : plain(system, p, o, all);
  });
}
