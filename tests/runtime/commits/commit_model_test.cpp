// Random lives of arrays with commits, beside a plain model; and programs that are killed.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <random>

#include "oocarray/commit.hpp"
#include "support/pauses.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

constexpr std::size_t columns = 90, most_rows = 200, arrays = 3;

struct state {
  std::vector<int> elements;
  std::map<std::string, std::string> attributes;
  bool operator==(const state&) const = default;
};

/// Arrays and what they should hold, now and as of their last commits.
class modelled_arrays {
 public:
  modelled_arrays(const store& s, std::uint64_t seed) : s_(s), random_(seed) {
    for (std::size_t i = 0; i < arrays; ++i) {
      const std::size_t rows = 1 + below(most_rows);
      const bool tiled = below(2) == 0;
      array_options<int> o{
          .fill = static_cast<int>(i), .sparse = below(2) == 0, .max_extents = {most_rows}, .commits = true};
      if (tiled) o.order = file_order::tiled, o.tile = {16, 32};
      ooc_array<int, 2>(rt(), s_, path(i), create, {rows, columns}, o).close();
      now_[i] = committed_[i] = {std::vector<int>(rows * columns, static_cast<int>(i)), {}};
      open(i);
    }
  }

  void step() {
    const std::size_t i = below(arrays);
    ooc_array<int, 2>& a = *array_[i];
    switch (below(13)) {
      case 0: return commit_some();
      case 1:
        a.roll_back();
        now_[i] = committed_[i];
        return;
      case 2: {
        const std::size_t rows = 1 + below(most_rows);
        a.resize(rows);
        now_[i].elements.resize(rows * columns, static_cast<int>(i));
        return;
      }
      case 3:
        now_[i].attributes["k" + std::to_string(below(3))] = std::to_string(below(100));
        for (const auto& [key, value] : now_[i].attributes) a.set_attribute(key, value);
        return;
      case 4:
        a.close();
        now_[i] = committed_[i];
        return open(i);
      case 5: return a.writeback(below(2) == 0 ? durable : durability::acknowledged);
      case 6: return a.sync();
      case 7:
        if (below(4) != 0) return;
        reopen_all();
        return;
      case 8: return keep();
      default: return write(i);
    }
  }

  void check() const {
    for (std::size_t i = 0; i < arrays; ++i) {
      const ooc_array<int, 2>& a = *array_[i];
      REQUIRE(a.size() == now_[i].elements.size());
      REQUIRE(std::equal(a.begin(), a.end(), now_[i].elements.begin()));
      REQUIRE(a.attributes() == now_[i].attributes);
    }
  }

 private:
  std::size_t below(std::size_t n) { return between(random_, 0, n - 1); }
  static std::string path(std::size_t i) { return "a" + std::to_string(i); }
  runtime& rt() {
    if (!rt_) rt_ = std::make_unique<runtime>(memory(s_.core()->staging_bytes() + 192_KiB));
    return *rt_;
  }
  void open(std::size_t i) { array_[i] = std::make_unique<ooc_array<int, 2>>(rt(), s_, path(i), ooc::open); }
  void commit_some() {
    std::vector<array_base*> some;
    for (std::size_t i = 0; i < arrays; ++i)
      if (below(2) == 0) {
        some.push_back(array_[i].get());
        committed_[i] = now_[i];
      }
    const std::string step = std::to_string(below(1000));
    commit(some, {{"step", step}});
    for (const array_base* a : some) REQUIRE(a->last_commit()->attributes.at("step") == step);
  }
  void reopen_all() {
    for (auto& a : array_) a.reset();
    rt_.reset();
    now_ = committed_;
    for (std::size_t i = 0; i < arrays; ++i) open(i);
  }
  /// What others do meanwhile does not show in a snapshot; all of it stands for itself.
  void keep() {
    if (kept_.size() == arrays) {
      for (const auto& [kept, elements] : kept_) {
        {
          const ooc_array<int, 2> a(rt(), s_, kept, open_read_only);
          REQUIRE(std::equal(a.begin(), a.end(), elements.begin(), elements.end()));
        }
        s_.remove(kept);
      }
      return kept_.clear();
    }
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < arrays; ++i)
      if (array_[i]->last_commit()->number != 0) paths.push_back(path(i));
    if (paths.size() != arrays) return;
    const auto made = s_.snapshot(paths, "kept", {.copy = true});
    for (std::size_t i = 0; i < arrays; ++i) kept_[made[i].path] = committed_[i].elements;
  }
  void write(std::size_t i) {
    ooc_array<int, 2>& a = *array_[i];
    const std::size_t n = a.size();
    const std::size_t first = below(n),
                      count = 1 + below(below(4) == 0 ? n - first : std::min<std::size_t>(50, n - first));
    for (std::size_t k = first; k < first + count; ++k)
      a(k / columns, k % columns) = now_[i].elements[k] = static_cast<int>(below(1 << 30));
  }

  ooc::store s_;
  std::mt19937_64 random_;
  std::unique_ptr<runtime> rt_;
  std::array<std::unique_ptr<ooc_array<int, 2>>, arrays> array_;
  std::array<state, arrays> now_, committed_;
  std::map<std::string, std::vector<int>> kept_;  ///< snapshots
};

/// What a killed program does: fills its arrays with the number of the step, in random pieces, and commits them; says
/// after each commit that it has been made.
[[noreturn]] void step_for_ever(const store& s, std::size_t count, std::uint64_t seed, int made) {
  std::mt19937_64 random(seed);
  runtime rt(memory(s.core()->staging_bytes() + 256_KiB));
  std::vector<ooc_array<int, 1>> all;
  std::vector<array_base*> pointers;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back({rt, s, "killed/" + std::to_string(i), ooc::open, {.wait_for_writer = std::chrono::seconds(120)}});
  for (auto& a : all) pointers.push_back(&a);
  for (int step = all[0][0] + 1;; ++step) {
    for (auto& a : all) {
      a.resize(std::size_t{20'000} + static_cast<std::size_t>(step % 7) * 1000);
      for (int& v : a) v = step;
      if (between(random, 0, 2) == 0) a.writeback();
      a.set_attribute("step", std::to_string(step));
    }
    commit(pointers, {{"step", std::to_string(step)}});
    if (::write(made, &step, sizeof step) != sizeof step) ::_exit(1);
  }
}

}  // namespace

TEST_CASE("random writes, commits, roll backs, resizes and openings equal a model") {
  const std::uint64_t seed = random_seed("commits");
  for (int round = 0; round < rounds(6, 100); ++round) {
    const test_store nodes(round % 2 == 0 ? store_kind::local : store_kind::in_memory);
    modelled_arrays all(nodes.handle(), seed + static_cast<std::uint64_t>(round));
    for (int k = 0; k < 60; ++k) {
      INFO("round " << round << ", step " << k);
      all.step();
      all.check();
    }
  }
}

TEST_CASE("a program that is killed at any moment leaves all its arrays at one commit, none older than it has seen") {
  std::mt19937_64 random(random_seed("killed between commits"));
  const std::size_t count = between(random, 1, 5);
  temporary_folder folder;
  const char* served = std::getenv("OOC_TEST_STORE");
  const std::string url =
      served != nullptr ? served : "local:" + (folder / "0").string() + "," + (folder / "1").string();
  const auto opened = [&] { return store::open(url, {.workers = 2, .staging = 64_KiB}); };
  if (pid_t maker = ::fork(); maker == 0) {
    store s = opened();
    if (served != nullptr) remove_all(*s.core(), "");
    runtime rt(memory(s.core()->staging_bytes() + 256_KiB));
    for (std::size_t i = 0; i < count; ++i)
      ooc_array<int, 1>(rt, s, "killed/" + std::to_string(i), create, {20'000},
                        {.max_extents = {30'000}, .commits = true})
          .close();
    ::_exit(0);
  } else {
    int status = -1;
    REQUIRE(::waitpid(maker, &status, 0) == maker);
    REQUIRE(status == 0);
  }
  int seen = 0;
  // A server gives a file to another writer when it has not heard of the killed one for 30 s.
  const int all_rounds = served != nullptr ? rounds(2, 10) : rounds(20, 300);
  for (int round = 0; round < all_rounds; ++round) {
    int made[2];
    REQUIRE(::pipe(made) == 0);
    const std::uint64_t seed = random();
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        step_for_ever(opened(), count, seed, made[1]);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        ::_exit(1);
      }
    }
    ::close(made[1]);
    int step = 0;
    // At least one commit, so that time passes between rounds, however long opening takes.
    if (::read(made[0], &step, sizeof step) == sizeof step) seen = step;
    random_pause(std::chrono::microseconds(between(random, 0, 40'000)));
    ::kill(child, SIGKILL);
    while (::read(made[0], &step, sizeof step) == sizeof step) seen = step;
    ::close(made[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const pid_t checker = ::fork();
    if (checker == 0) {
      const store s = opened();
      runtime rt(memory(s.core()->staging_bytes() + 256_KiB));
      int found = -1;
      for (std::size_t i = 0; i < count; ++i) {
        const ooc_array<int, 1> a(rt, s, "killed/" + std::to_string(i), open_read_only);
        const int first = a[0];
        const std::string text = std::to_string(first);
        const bool whole = std::all_of(a.begin(), a.end(), [&](int v) { return v == first; }) &&
                           a.size() == 20'000 + static_cast<std::size_t>(first % 7) * 1000 &&
                           a.attributes().at("step") == text && a.last_commit()->attributes.at("step") == text;
        if (!whole || first < seen || first > seen + 1 || (found != -1 && first != found)) {
          std::fprintf(stderr, "array %zu: step %d of %zu elements, seen %d, others %d\n", i, first, a.size(), seen,
                       found);
          ::_exit(2);
        }
        found = first;
      }
      ::_exit(0);
    }
    REQUIRE(::waitpid(checker, &status, 0) == checker);
    INFO("round " << round);
    REQUIRE(status == 0);
  }
}
