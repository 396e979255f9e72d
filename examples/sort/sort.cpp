// Sorting keys larger than memory:
//
//     a_0 <= a_1 <= ... <= a_(n-1)
//
// The keys are 0 ... n - 1, scrambled: key i is i p mod n, where p is a prime larger than n, so that each
// comes once.  Key i of the result is therefore i.
#include "oocarray/algorithm/sort.hpp"

#include <algorithm>
#include <cstdio>

#include "harness/command_line.hpp"
#include "harness/plain_array.hpp"
#include "harness/report.hpp"
#include "harness/run.hpp"
#include "harness/store_files.hpp"

namespace {

using key = std::uint64_t;

key scrambled(std::size_t i, std::size_t n) {
  constexpr key p = (key{1} << 61) - 1;
  return static_cast<key>(static_cast<unsigned __int128>(i) * (p % n) % n);
}

template <class Keys>
void fill(Keys& a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) a[i] = scrambled(i, n);
}

template <class Keys>
std::size_t wrong_keys(const Keys& a, std::size_t n) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) wrong += a[i] != i;
  return wrong;
}

int finish(examples::report& r, std::size_t n, std::size_t wrong) {
  std::printf("n = %zu, %zu keys in the wrong place\n", n, wrong);
  r.set("wrong", std::uint64_t{wrong});
  return r.finish(wrong == 0);
}

int out_of_core(const examples::common_options& o, const examples::ranks& all) {
  ooc::runtime rt{{.memory = o.memory}};
  examples::report r("sort", o.json, &rt, all);
  const ooc::store store = o.open_store(all);
  examples::store_files files(store, o, all);
  const std::size_t n = o.size;
  auto a = files.array<key, 1>(rt, "sort.keys", {n}, {});
  r.phase("create", [&] {
    a.overwrite(a.whole());
    fill(a, n);
    a.writeback();
  });
  const ooc::sort_statistics done = r.phase("sort", [&] { return ooc::sort(a); });
  std::printf("%llu runs, %llu passes\n", static_cast<unsigned long long>(done.runs),
              static_cast<unsigned long long>(done.passes));
  r.set("runs", done.runs);
  r.set("passes", done.passes);
  return finish(r, n, r.phase("check", [&] { return wrong_keys(std::as_const(a), n); }));
}

int plain(const examples::common_options& o, const examples::ranks& all) {
  examples::report r("sort", o.json, nullptr, all);
  const examples::rival_folder folder(o, "sort", all);
  const std::size_t n = o.size;
  using vector = examples::plain_array<key, 1>;
  vector a(folder.map("keys", n * sizeof(key)), {n}, all);
  r.phase("create", [&] {
    fill(a, n);
    a.writeback();
  });
  if (o.vm == "anonymous") r.phase("load", [&] { a = vector::read_from(folder / "keys", {n}, all); });
  r.phase("sort", [&] {
    std::sort(a.data(), a.data() + n);
    a.writeback();
  });
  return finish(r, n, wrong_keys(a, n));
}

}  // namespace

int main(int count, char** arguments) {
  return examples::run("sort", count, arguments, [](int argc, char** argv, const examples::ranks& all) {
    examples::common_options o;
    o.size = 100'000'000;
    examples::command_line c("sort", "Sorts keys out of core.");
    c.count("size", o.size, 1, std::uint64_t{1} << 42, "keys");
    o.add_to(c);
    if (!c.parse(argc, argv)) return 0;
    if (all.size() > 1)
      throw examples::bad_option("sort runs as one process, and there are " + std::to_string(all.size()) +
                                 " ranks; start it without mpirun");
    if (o.stage != "all") throw examples::bad_option("--stage " + o.stage + ": there is only --stage all here");
    return o.vm == "none" ? out_of_core(o, all) : plain(o, all);
  });
}
