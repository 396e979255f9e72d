// Access patterns other than a sweep: ours against a mapped file under the same memory cap.
//
// The arrays are 8 times the budget each (the graph as a whole, and the two of jacobi_swapped together), the budget is
// the cap less 24 MiB.  A
// run stops when its time is up; what is compared is how much each side did in a second, writing back
// included where the pattern writes.  The rival is a mapped file with no, sequential and random advice,
// each of them in each round, and the best counts.
//
//     PATTERN                 the best rival's time for as much / ours; patterns/loops.hpp has the loops
//     PATTERN_touches_per_s   ours
//     PATTERN_amplification   bytes read from the device for a touch / those of the rival with random
//                             advice
//     PATTERN_written_per_touch  bytes, of ours, written back at the end included; where the row waits for that
//     PATTERN_served          the same ratio, with ours on a store of 4 I/O servers; one run
//     worst_amplification     the largest of those, with the spread of that pattern
//
// nearly_fits is a row without a rival: patterns/nearly_fitting.hpp.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/child.hpp"
#include "measure/memory_cap.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/rival_memory.hpp"
#include "measure/scratch.hpp"
#include "measure/served_store.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/ooc_array.hpp"
#include "patterns/loops.hpp"
#include "patterns/nearly_fitting.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using patterns::graph;
using patterns::matrices;
using patterns::time_limit;
using matrix = ooc::ooc_array<double, 2>;
using numbers = ooc::ooc_array<std::uint32_t, 1>;

constexpr std::uint64_t slack = 24_MiB;
constexpr int all_advices[] = {MADV_NORMAL, MADV_SEQUENTIAL, MADV_RANDOM};

struct pattern {
  enum class kind { loop, gather, search };
  enum class until { done, acknowledged, durable };

  const char* name;
  double (*loop)(const matrices&, const time_limit&) = nullptr;
  until ends = until::done;
  bool overwrites = false;
  kind what = kind::loop;
  std::size_t indices = 0;
  bool halves = false;  ///< on the arrays that are 8 times the budget together
};

using enum pattern::until;

/// Those that read `a` and check it come before the one whose second sweep writes to it.
constexpr pattern all_patterns[] = {
    {"random_read", patterns::random_read},
    {"random_read_16", patterns::random_read_16},
    {"zipf_read", patterns::zipf_read},
    {"random_update", patterns::random_update, durable},
    {"gather", nullptr, done, false, pattern::kind::gather, 1'000'000},
    {"gather_few", nullptr, done, false, pattern::kind::gather, 10'000},
    {"column_read", patterns::column_read},
    {"column_update", patterns::column_update, acknowledged},
    {"sweep_again", patterns::sweep_again},
    {"update_again", patterns::update_again, acknowledged},
    {"transpose_naive", patterns::transpose_naive, acknowledged},
    {"tiles_row_major", patterns::tiles_row_major},
    {"eigen_colwise", patterns::eigen_colwise},
    {"eigen_transpose", patterns::eigen_transpose, done},
    {"binary_search", patterns::binary_search},
    {"bfs", nullptr, done, false, pattern::kind::search},
    {"jacobi", patterns::jacobi, acknowledged},
    {"jacobi_overwrite", patterns::jacobi, acknowledged, true},
    {"jacobi_swapped", patterns::jacobi_swapped, acknowledged, false, pattern::kind::loop, 0, true},
    {"jacobi_swapped_large", patterns::jacobi_swapped, acknowledged},
};

/// The two arrays of a loop.
struct pair_of_names {
  const char* a;
  const char* b;
};

struct setting {
  std::filesystem::path dir;
  std::uint64_t budget = 0;
  double seconds = 0;      ///< of a run
  std::size_t n = 0;       ///< rows and columns
  std::size_t n_half = 0;  ///< of an array of half the size
  std::uint32_t vertices = 0;

  std::uint64_t edges() const { return std::uint64_t{vertices} * graph::degree; }
  std::uint64_t graph_budget() const { return (edges() + 3 * std::uint64_t{vertices} + 1) * 4 / 8; }
  std::uint64_t cap(const pattern& p) const {
    return (p.what == pattern::kind::search ? graph_budget() : budget) + slack;
  }
  /// Lists of the program's own come out of the budget, so that the cap holds them on both sides.
  std::uint64_t memory(const pattern& p) const { return cap(p) - slack - indices(p) * 16; }
  std::size_t indices(const pattern& p) const { return p.indices ? std::min<std::size_t>(p.indices, budget / 64) : 0; }
  std::size_t rows(bool halves) const { return halves ? n_half : n; }
  static pair_of_names names(bool halves) {
    return halves ? pair_of_names{"half_a", "half_b"} : pair_of_names{"a", "b"};
  }
  std::filesystem::path plain(const char* name) const { return dir / name; }
};

/// The bytes that this process had read from disks, by the kernel's count.
std::uint64_t device_bytes_read() {
  std::ifstream in("/proc/self/io");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("read_bytes:")) return std::stoull(line.substr(11));
  return 0;
}

/// Runs `work`, which returns touches; `finish` counts too.
json timed(const std::function<double()>& work, const std::function<void()>& finish) {
  const std::uint64_t before = device_bytes_read();
  const stopwatch w;
  const double touches = work();
  if (finish) finish();
  const double seconds = w.seconds();
  return {
      {"touches", touches}, {"rate", touches / seconds}, {"read", static_cast<double>(device_bytes_read() - before)}};
}

/// Loops of Eigen may still run when the process ends.
bool may_go_on(const pattern& p) { return p.loop == patterns::eigen_colwise || p.loop == patterns::eigen_transpose; }

// --- ours.  Nothing is destroyed at the end; what no loop touches any more is closed, or servers would
// take the file for open until the process has been away for half a minute.

constexpr std::chrono::seconds until_free{60};

template <class Array>
Array& open(ooc::runtime& rt, const ooc::store& store, const char* name) {
  return *new Array(rt, store, name, ooc::open, {.wait_for_writer = until_free});
}

void make_ours(const setting& s, const std::string& url) {
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = std::max<std::uint64_t>(s.budget, 64_MiB)}};
    const ooc::store store = ooc::store::open(url);
    for (const bool halves : {false, true}) {
      const std::size_t n = s.rows(halves);
      matrix a{rt, store, setting::names(halves).a, ooc::create, {n, n}};
      matrix b{rt, store, setting::names(halves).b, ooc::create, {n, n}};
      a.overwrite(a.whole());
      for (std::size_t k = 0; k < n * n; ++k) a.data()[k] = static_cast<double>(k);
      a.close();
      b.overwrite(b.whole());
      std::fill(b.begin(), b.end(), 0.0);
      b.close();
    }
    numbers offsets{rt, store, "offsets", ooc::create, {std::size_t{s.vertices} + 1}};
    numbers edges{rt, store, "edges", ooc::create, {s.edges()}};
    for (std::uint32_t v = 0; v <= s.vertices; ++v) offsets[v] = v * graph::degree;
    for (std::uint64_t e = 0; e < s.edges(); ++e) edges[e] = graph::target(e, s.vertices);
    for (const char* name : {"distance", "queue"}) numbers{rt, store, name, ooc::create, {s.vertices}}.close();
    return json::object();
  });
}

/// A run must find these: the marks of eigen_transpose, and no vertex seen.
void prepare_ours(const setting& s, const pattern& p, const std::string& url) {
  const bool searches = p.what == pattern::kind::search;
  const bool marks = p.loop == patterns::eigen_transpose;
  if (!searches && !marks) return;
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = 64_MiB}};
    const ooc::store store = ooc::store::open(url);
    if (searches) {
      numbers d{rt, store, "distance", ooc::open, {.wait_for_writer = until_free}};
      d.overwrite(d.whole());
      std::fill(d.begin(), d.end(), graph::unseen);
      d.close();
    }
    if (marks) {
      matrix b{rt, store, "b", ooc::open, {.wait_for_writer = until_free}};
      std::vector<std::size_t> where;
      std::vector<double> values;
      for (const std::size_t r : patterns::eigen_marks(s.n)) {
        where.insert(where.end(), {r * s.n + s.n - 1, (s.n - 1) * s.n + r});
        values.insert(values.end(), {1, 2});
      }
      b.scatter(where, values);
      b.close();
    }
    return json::object();
  });
}

json search_ours(const setting& s, ooc::runtime& rt, const ooc::store& store) {
  numbers& offsets = open<numbers>(rt, store, "offsets");
  numbers& edges = open<numbers>(rt, store, "edges");
  numbers& distance = open<numbers>(rt, store, "distance");
  numbers& queue = open<numbers>(rt, store, "queue");
  const graph g{offsets.data(), edges.data(), distance.data(), queue.data(), s.vertices};
  json r = timed([&] { return patterns::breadth_first(g, time_limit(s.seconds)); }, nullptr);
  for (numbers* one : {&offsets, &edges, &distance, &queue}) one->close();
  return r;
}

json run_ours(const setting& s, const pattern& p, const std::string& url) {
  prepare_ours(s, p, url);
  drop_cache(s.dir);
  return in_child(s.cap(p), [&] {
    auto& rt = *new ooc::runtime{ooc::runtime_options{.memory = s.memory(p)}};
    auto& store = *new ooc::store(ooc::store::open(url));
    if (p.what == pattern::kind::search) return search_ours(s, rt, store);
    matrix& a = open<matrix>(rt, store, setting::names(p.halves).a);
    matrix& b = open<matrix>(rt, store, setting::names(p.halves).b);
    const std::size_t n = s.rows(p.halves);
    const auto write_back = [&] {
      if (p.ends == done) return;
      for (matrix* m : {&a, &b}) m->writeback(p.ends == durable ? ooc::durable : ooc::durability::acknowledged);
    };
    json r;
    if (p.what == pattern::kind::gather) {
      const std::vector<std::size_t> indices = patterns::random_elements(s.indices(p), a.size());
      std::vector<double> out(indices.size());
      r = timed([&] { return a.gather(indices, out), static_cast<double>(out.size()); }, nullptr);
      patterns::check_gathered(indices, out, out.size());
    } else {
      if (p.overwrites) b.overwrite({{1, 1}, {n - 1, n - 1}});
      r = timed([&] { return p.loop({a.data(), b.data(), n}, time_limit(s.seconds)); }, write_back);
    }
    if (!may_go_on(p))
      for (matrix* m : {&a, &b}) m->close();
    r["written"] = rt.stats().bytes_written;
    return r;
  });
}

// --- the rival

/// Writes `count` elements, the k-th being of(k).
template <class T, class F>
void make_plain(const std::filesystem::path& file, std::uint64_t count, F of) {
  std::ofstream out(file, std::ios::binary);
  std::vector<T> some;
  for (std::uint64_t k = 0; k < count;) {
    some.clear();
    for (; k < count && some.size() < 1 << 18; ++k) some.push_back(of(k));
    out.write(reinterpret_cast<const char*>(some.data()), static_cast<std::streamsize>(some.size() * sizeof(T)));
  }
  out.close();
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

void make_rival(const setting& s) {
  for (const bool halves : {false, true}) {
    const pair_of_names names = setting::names(halves);
    const std::uint64_t size = s.rows(halves) * s.rows(halves);
    make_plain<double>(s.plain(names.a), size, [](std::uint64_t k) { return static_cast<double>(k); });
    make_plain<double>(s.plain(names.b), size, [](std::uint64_t) { return 0.0; });
  }
  make_plain<std::uint32_t>(s.plain("offsets"), std::uint64_t{s.vertices} + 1,
                            [](std::uint64_t v) { return static_cast<std::uint32_t>(v * graph::degree); });
  make_plain<std::uint32_t>(s.plain("edges"), s.edges(), [&](std::uint64_t e) { return graph::target(e, s.vertices); });
  make_plain<std::uint32_t>(s.plain("queue"), s.vertices, [](std::uint64_t) { return 0u; });
}

void prepare_rival(const setting& s, const pattern& p) {
  if (p.what == pattern::kind::search)
    make_plain<std::uint32_t>(s.plain("distance"), s.vertices, [](std::uint64_t) { return graph::unseen; });
  if (p.loop != patterns::eigen_transpose) return;
  std::fstream b(s.plain("b"), std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t at, double value) {
    b.seekp(static_cast<std::streamoff>(at * sizeof value));
    b.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const std::size_t r : patterns::eigen_marks(s.n)) {
    put(r * s.n + s.n - 1, 1);
    put((s.n - 1) * s.n + r, 2);
  }
}

mapped_file& map(const setting& s, const char* name, int advice) { return *new mapped_file(s.plain(name), advice); }

json search_rival(const setting& s, int advice) {
  const auto numbers_of = [&](const char* name) {
    return reinterpret_cast<std::uint32_t*>(map(s, name, advice).data());
  };
  const graph g{numbers_of("offsets"), numbers_of("edges"), numbers_of("distance"), numbers_of("queue"), s.vertices};
  return timed([&] { return patterns::breadth_first(g, time_limit(s.seconds)); }, nullptr);
}

json run_rival(const setting& s, const pattern& p, int advice) {
  prepare_rival(s, p);
  drop_cache(s.dir);
  return in_child(s.cap(p), [&] {
    if (p.what == pattern::kind::search) return search_rival(s, advice);
    const pair_of_names names = setting::names(p.halves);
    mapped_file &a = map(s, names.a, advice), &b = map(s, names.b, advice);
    const matrices m{a.data(), b.data(), s.rows(p.halves)};
    if (p.what == pattern::kind::gather) {
      const std::vector<std::size_t> indices = patterns::random_elements(s.indices(p), s.n * s.n);
      std::vector<double> out(indices.size());
      return timed([&] { return patterns::gather(m, indices, out, time_limit(s.seconds)); }, nullptr);
    }
    return timed([&] { return p.loop(m, time_limit(s.seconds)); },
                 [&] {
                   // Only where the row says "until on disk": dirty pages are the rival's otherwise.
                   if (p.ends == durable && ::msync(b.data(), b.size() * sizeof(double), MS_SYNC) != 0)
                     throw std::runtime_error("msync");
                 });
  });
}

double number(const json& run, const char* name) { return run[name].get<double>(); }

/// Bytes read for a touch.
double read_per_touch(const json& run) { return number(run, "read") / std::max(1.0, number(run, "touches")); }

struct measured {
  std::string worst;
  std::optional<paired_ratio> amplification;
  std::uint64_t peak = 0;  ///< above the cap less its slack: budget, and lists of the program's own
};

void measure(const setting& s, const pattern& p, const std::string& url, const std::string& served, unsigned rounds,
             json& out, measured& all) {
  const std::string name = p.name;
  paired_ratio ratio(name), rate(name + "_touches_per_s"), read(name + "_amplification");
  double rival = 0;
  std::optional<paired_ratio> written;
  if (p.ends != done) written.emplace(name + "_written_per_touch");
  for (unsigned k = 0; k < rounds; ++k) {
    rival = 0;
    double random_reads = 0;
    for (const int advice : all_advices) {
      const json r = run_rival(s, p, advice);
      rival = std::max(rival, number(r, "rate"));
      if (advice == MADV_RANDOM) random_reads = read_per_touch(r);
    }
    const json mine = run_ours(s, p, url);
    const std::uint64_t peak = mine["peak_rss"].get<std::uint64_t>(), given = s.cap(p) - slack;
    all.peak = std::max(all.peak, peak - std::min(peak, given));
    ratio.add(number(mine, "rate"), rival);
    rate.add(number(mine, "rate"));
    if (random_reads > 0) read.add(read_per_touch(mine), random_reads);
    if (random_reads <= 0) read.add(0);
    if (written) written->add(number(mine, "written"), std::max(1.0, number(mine, "touches")));
  }
  ratio.put(out);
  rate.put(out);
  read.put(out);
  if (written) written->put(out);
  if (!all.amplification || read.middle() > all.amplification->middle()) {
    all.amplification = read;
    all.worst = name;
  }
  if (!served.empty()) {
    paired_ratio one(name + "_served");
    one.add(number(run_ours(s, p, served), "rate"), rival);
    out[name + "_served"] = one.middle();
  }
}

std::vector<pattern> patterns_named(const std::vector<std::string>& names) {
  if (names.empty()) return {std::begin(all_patterns), std::end(all_patterns)};
  std::vector<pattern> chosen;
  for (const std::string& name : names) {
    const auto p = std::find_if(std::begin(all_patterns), std::end(all_patterns),
                                [&](const pattern& any) { return name == any.name; });
    if (p == std::end(all_patterns))
      throw std::runtime_error("patterns: --only " + name + ": there is no such pattern; see the names of the rows");
    chosen.push_back(*p);
  }
  return chosen;
}

void measure_beside_mapped_files(setting& s, const options& o, const std::vector<pattern>& chosen, json& out) {
  s.n = static_cast<std::size_t>(std::sqrt(static_cast<double>(s.budget)));  // 8 bytes each
  s.n = std::max<std::size_t>(64, s.n / 64 * 64);
  s.n_half = static_cast<std::size_t>(static_cast<double>(s.n) * std::sqrt(0.5)) / 2 * 2;
  // 10^7 vertices, or fewer where the matrices are small: arrays of the same size.
  s.vertices = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(10'000'000, std::max<std::uint64_t>(s.budget, 4_MiB) * 8 / 52));
  const unsigned rounds = o.rounds_or(3);
  const bool serve = o.nodes != 0 || !o.memory;
  require_space(o.dir, (serve ? 3 : 2) * (24 * s.n * s.n + 8 * s.graph_budget()) + 256_MiB);

  const std::string url = "local:" + fresh_folder(o.dir, "store").string();
  make_ours(s, url);
  make_rival(s);
  std::optional<served_store> servers;
  if (serve) {
    servers.emplace(fresh_folder(o.dir, "served"), o.nodes ? o.nodes : 4);
    make_ours(s, servers->url());
  }
  measured all;
  for (const pattern& p : chosen) measure(s, p, url, serve ? servers->url() : std::string(), rounds, out, all);
  json worst;
  all.amplification->put(worst);
  for (const char* end : {"", "_min", "_max"})
    out["worst_amplification" + std::string(end)] = worst[all.worst + "_amplification" + end];
  out["worst_amplification_pattern"] = all.worst;
  out["peak_over_budget_mib"] = all.peak >> 20;
  out["array_mib"] = (8 * s.n * s.n) >> 20;
}

}  // namespace

json run_patterns(const options& o) {
  std::vector<std::string> names = o.only;
  const bool nearly = std::erase(names, "nearly_fits") > 0;
  const std::vector<pattern> chosen = nearly && names.empty() ? std::vector<pattern>{} : patterns_named(names);
  setting s;
  s.dir = o.dir;
  s.budget = o.memory_or(64_MiB);
  if (s.budget < 4_MiB) throw std::runtime_error("patterns: --memory must be 4M or more");
  s.seconds = o.seconds > 0 ? o.seconds : 2.5;
  json out;
  if (nearly || o.only.empty()) patterns::measure_nearly_fitting(o.dir, s.budget, s.seconds, out);
  if (!chosen.empty()) measure_beside_mapped_files(s, o, chosen, out);
  out["budget_mib"] = s.budget >> 20;
  out["seconds_of_a_run"] = s.seconds;
  out["capped"] = can_cap_memory();
  return out;
}

}  // namespace bench
