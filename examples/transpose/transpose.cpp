// A table of n records with 100 fields each, transposed: then each field lies in one row, and what
// a column store does with it is a loop over a contiguous row.
//
//     columns(j, i) = table(i, j) ,   mean_j = 1/n sum_i table(i, j)
//
// The fields of record i are (i mod 64) + 100 j, so that each element of the result is known, and
// the mean of each field: every partial sum is an integer below 2^53.
#include <cstdio>
#include <utility>

#include "harness/checksum.hpp"
#include "harness/command_line.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "harness/store_files.hpp"
#include "oocarray/algorithm/copy.hpp"
#include "oocarray/ooc_array.hpp"

namespace {

constexpr std::size_t fields = 100;

double field_of(std::size_t i, std::size_t j) { return static_cast<double>(i % 64 + 100 * j); }

int solve(const examples::common_options& o, const examples::ranks& all) {
  ooc::runtime rt{{.memory = o.memory}};
  examples::report r("transpose", o.json, &rt, all);
  const ooc::store store = o.open_store(all);
  examples::store_files files(store, o, all);
  const std::size_t n = o.size;
  const ooc::array_options<double> options{.group = all.group(), .owner_computes = all.size() > 1};
  auto table = files.array<double, 2>(rt, "transpose.table", {n, fields}, options);
  auto columns = files.array<double, 2>(rt, "transpose.columns", {fields, n}, options);
  r.phase("create", [&] {
    table.overwrite(table.local_box());
    const auto [first, last] = table.local_rows();
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t j = 0; j < fields; ++j) table[i][j] = field_of(i, j);
    table.sync();
  });

  r.phase("transpose", [&] { ooc::transpose(table, columns); });
  r.rate("transpose", 2.0 * sizeof(double) * static_cast<double>(table.size()));

  const double wrong = r.phase("means", [&] {
    double bad = 0, sum = 0;
    const auto [first, last] = columns.local_rows();
    for (std::size_t j = first; j < last; ++j) {
      const double* const column = &std::as_const(columns)[j][0];
      double s = 0, known = 0;
      for (std::size_t i = 0; i < n; ++i) {
        s += column[i];
        known += field_of(i, j);
        bad += column[i] != field_of(i, j);
      }
      if (all.leads() && j == 0) std::printf("mean of field 0: %.6f\n", s / static_cast<double>(n));
      bad += s != known;
      sum += examples::row_checksum(j, column, n);
    }
    r.set("checksum", all.sum(sum));
    return all.sum(bad);
  });
  r.set("n", std::uint64_t{n});
  r.set("wrong", wrong);
  return r.finish(wrong == 0);
}

}  // namespace

int main(int count, char** arguments) {
  return examples::run("transpose", count, arguments, [](int argc, char** argv, const examples::ranks& all) {
    examples::common_options o;
    o.size = 500'000;
    examples::command_line c("transpose", "A table of n records with 100 fields, transposed.");
    c.count("size", o.size, 1, std::uint64_t{1} << 34, "n, records");
    o.add_to(c);
    if (!c.parse(argc, argv)) return 0;
    if (o.vm != "none" || !o.creates() || !o.computes())
      throw examples::bad_option("transpose has no rivals and no stages: leave out --vm and --stage");
    return solve(o, all);
  });
}
