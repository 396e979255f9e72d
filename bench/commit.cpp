// What commits cost beside durable write-back, and beside a checkpoint that copies everything.
//
//     commit_over_durable   Jacobi on two arrays of twice the budget each, a commit after each sweep: time / the same
//                           on plain arrays with writeback(durable)
//     sparse_over_reserved  the same with commits on sparse arrays, which give back what the commit before had: time /
//                           on arrays that keep both sides of each chunk
//     read_over_plain       sum of an array of four times the budget that was committed, cold: speed / that of a plain
//                           array that was written in the same way
//     update_over_plain     updates of 4 KiB at random places of an array of four times the budget, a commit each
//                           2 s: updates a second / those of a plain array with writeback(durable) each 2 s
//     checkpoint_over_copy  an array of 16 times the budget of which 10 % have changed, in pieces of 1 MiB, most of
//                           which have left memory by then: time of writing all of it to a new file, which is synced /
//                           time of the commit
//     small_commits_per_s   commits of one array of a block, on a local store
//     served_commits_per_s  commits of 64 arrays of a block each, on 4 I/O servers of this machine
#include "oocarray/commit.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <numeric>
#include <stdexcept>

#include "measure/child.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/random_numbers.hpp"
#include "measure/raw_io.hpp"
#include "measure/scratch.hpp"
#include "measure/served_store.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/ooc_array.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using vector = ooc::ooc_array<double, 1>;
using matrix = ooc::ooc_array<double, 2>;

constexpr std::uint64_t slack = 96_MiB;

void make_safe(std::initializer_list<ooc::array_base*> arrays, ooc::array_base& written, bool commits) {
  if (commits)
    ooc::commit(arrays);
  else
    written.writeback(ooc::durable);
}

json jacobi(const std::filesystem::path& folder, std::uint64_t budget, bool commits, int sweeps, bool sparse = false) {
  return in_child(budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    const ooc::store s = ooc::store::open("local:" + folder.string());
    constexpr std::size_t columns = 4096;
    const std::size_t n = 2 * budget / sizeof(double) / columns;
    const ooc::array_options<double> o{.sparse = sparse, .commits = commits, .replace = true};
    matrix a{rt, s, "a", ooc::create, {n, columns}, o}, b{rt, s, "b", ooc::create, {n, columns}, o};
    for (double& x : a) x = 1;
    for (double& x : b) x = 1;
    make_safe({&a, &b}, a, commits);
    make_safe({&a, &b}, b, commits);
    json out;
    out["seconds"] = seconds_of([&] {
      matrix *from = &a, *to = &b;
      for (int k = 0; k < sweeps; ++k, std::swap(from, to)) {
        to->overwrite({{1, 0}, {n - 1, columns}});
        for (std::size_t i = 1; i < n - 1; ++i) {
          (*to)[i][0] = (*to)[i][columns - 1] = 1;
          for (std::size_t j = 1; j < columns - 1; ++j)
            (*to)[i][j] = 0.25 * ((*from)[i - 1][j] + (*from)[i + 1][j] + (*from)[i][j - 1] + (*from)[i][j + 1]);
        }
        make_safe({&a, &b}, *to, commits);
      }
    });
    return out;
  });
}

void make_vector(const std::filesystem::path& folder, std::uint64_t budget, std::uint64_t times, bool commits) {
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    vector a{rt,
             ooc::store::open("local:" + folder.string()),
             "a",
             ooc::create,
             {times * budget / sizeof(double)},
             {.commits = commits, .replace = true}};
    a.overwrite(a.whole());
    for (double& x : a) x = 1;
    make_safe({&a}, a, commits);
    return json::object();
  });
}

json sum(const std::filesystem::path& folder, std::uint64_t budget) {
  drop_cache(folder);
  return in_child(budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    const vector a{rt, ooc::store::open("local:" + folder.string()), "a", ooc::open_read_only};
    json out;
    out["seconds"] = seconds_of([&] {
      if (std::accumulate(a.begin(), a.end(), 0.0) != static_cast<double>(a.size()))
        throw std::runtime_error("commit: a sum is wrong");
    });
    return out;
  });
}

json updates(const std::filesystem::path& folder, std::uint64_t budget, bool commits, double seconds) {
  return in_child(budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    vector a{rt, ooc::store::open("local:" + folder.string()), "a", ooc::open};
    constexpr std::size_t piece = 4096 / sizeof(double);
    random_numbers random(7);
    std::uint64_t done = 0;
    double since = 0;
    const double all = seconds_of([&] {
      for (double now = 0; now < seconds;) {
        now += seconds_of([&] {
          for (int k = 0; k < 256; ++k, ++done) {
            const std::size_t first = random.below(a.size() / piece) * piece;
            for (std::size_t i = first; i < first + piece; ++i) a[i] += 1;
          }
        });
        if (now - since < 2) continue;
        now += seconds_of([&] { make_safe({&a}, a, commits); });
        since = now;
      }
      make_safe({&a}, a, commits);
    });
    json out;
    out["rate"] = static_cast<double>(done) / all;
    return out;
  });
}

/// A new file with all elements, as .npy and HDF5 without chunks are written.
void write_copy(const vector& a, const std::filesystem::path& file) {
  std::vector<double> part(1_MiB);
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  for (std::size_t i = 0; i < a.size(); i += part.size()) {
    const std::size_t n = std::min(part.size(), a.size() - i);
    std::copy_n(a.begin() + static_cast<std::ptrdiff_t>(i), n, part.begin());
    if (::write(fd, part.data(), n * sizeof(double)) != static_cast<ssize_t>(n * sizeof(double)))
      throw std::runtime_error("commit: the copy cannot be written");
  }
  if (::fsync(fd) != 0) throw std::runtime_error("commit: the copy cannot be synced");
  ::close(fd);
}

json checkpoint(const std::filesystem::path& folder, std::uint64_t budget) {
  return in_child(budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    vector a{rt, ooc::store::open("local:" + folder.string()), "a", ooc::open};
    constexpr std::size_t piece = 1_MiB / sizeof(double);
    random_numbers random(3);
    const auto change = [&] {
      for (std::size_t k = 0; k < a.size() / piece / 10; ++k) {
        const std::size_t first = random.below(a.size() / piece) * piece;
        for (std::size_t i = first; i < first + piece; ++i) a[i] += 1;
      }
    };
    json out;
    change();
    out["commit"] = seconds_of([&] { ooc::commit({&a}); });
    change();
    a.writeback();
    out["copy"] = seconds_of([&] { write_copy(a, folder / "copy"); });
    std::filesystem::remove(folder / "copy");
    ooc::commit({&a});
    return out;
  });
}

double commits_per_second(const std::string& url, std::size_t arrays) {
  return in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = 64_MiB}};
    const ooc::store s = ooc::store::open(url);
    std::vector<vector> all;
    std::vector<ooc::array_base*> pointers;
    for (std::size_t i = 0; i < arrays; ++i)
      all.push_back({rt, s, "small/" + std::to_string(i), ooc::create, {8192}, {.commits = true, .replace = true}});
    for (vector& a : all) pointers.push_back(&a);
    ooc::commit(pointers);
    constexpr int times = 20;
    json out;
    out["seconds"] = seconds_of([&] {
      for (int k = 0; k < times; ++k) {
        for (vector& a : all) a[0] = k;
        ooc::commit(pointers);
      }
    });
    out["rate"] = times / out["seconds"].get<double>();
    return out;
  })["rate"];
}

}  // namespace

json run_commit(const options& o) {
  const std::uint64_t budget = o.memory_or(64_MiB);
  require_space(o.dir, 60 * budget + 256_MiB);
  const auto two = fresh_folder(o.dir, "two"), plain = fresh_folder(o.dir, "plain");
  paired_ratio jacobi_ratio("commit_over_durable"), sparse_ratio("sparse_over_reserved"), read_ratio("read_over_plain"),
      update_ratio("update_over_plain"), copy_ratio("checkpoint_over_copy"), small("small_commits_per_s"),
      served("served_commits_per_s");
  const unsigned rounds = o.rounds_or(5);
  for (unsigned k = 0; k < rounds; ++k) {
    const json with = jacobi(two, budget, true, 3), without = jacobi(plain, budget, false, 3);
    jacobi_ratio.add(with["seconds"].get<double>(), without["seconds"].get<double>());
    const json sparse = jacobi(two, budget, true, 3, true);
    sparse_ratio.add(sparse["seconds"].get<double>(), with["seconds"].get<double>());
  }
  make_vector(two, budget, 4, true);
  make_vector(plain, budget, 4, false);
  for (unsigned k = 0; k < rounds; ++k) {
    const json without = sum(plain, budget), with = sum(two, budget);
    read_ratio.add(without["seconds"].get<double>(), with["seconds"].get<double>());
  }
  const double seconds = o.seconds > 0 ? o.seconds : 5;
  for (unsigned k = 0; k < rounds; ++k) {
    const json without = updates(plain, budget, false, seconds), with = updates(two, budget, true, seconds);
    update_ratio.add(with["rate"].get<double>(), without["rate"].get<double>());
  }
  make_vector(two, budget, 16, true);
  for (unsigned k = 0; k < rounds; ++k) {
    const json r = checkpoint(two, budget);
    copy_ratio.add(r["copy"].get<double>(), r["commit"].get<double>());
  }
  for (unsigned k = 0; k < rounds; ++k) small.add(commits_per_second("local:" + plain.string(), 1), 1);
  {
    const served_store servers(fresh_folder(o.dir, "served"), 4);
    for (unsigned k = 0; k < rounds; ++k) served.add(commits_per_second(servers.url(), 64), 1);
  }
  json out;
  for (const paired_ratio* r : {&jacobi_ratio, &sparse_ratio, &read_ratio, &update_ratio, &copy_ratio, &small, &served})
    r->put(out);
  return out;
}

}  // namespace bench
