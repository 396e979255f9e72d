// A random program on the ranks of an MPI program, each of which keeps the whole array as a plain
// vector.
//
// All ranks throw the same dice, so each knows what the others do in an epoch: who writes which
// element (given to whoever asks first), and how the epoch ends.  Between two syncs a rank reads
// what no other rank writes, and compares.
//
//     attack_ranks URL SEED TOTALS
//
// With a fourth argument, the file of a rank_board, the ranks write a history together instead,
// until somebody kills them (killed_ranks.cpp); and with a fifth, "commits", they commit steps (commits.cpp).
#include <mpi.h>
#include <unistd.h>

#include <iostream>
#include <optional>

#include "attack/committing/commit_plan.hpp"
#include "attack/elements.hpp"
#include "attack/rank_history.hpp"
#include "attack/round.hpp"
#include "oocarray/mpi.hpp"
#include "support/pauses.hpp"
#include "support/random_boxes.hpp"

namespace ooc::attack {

namespace {

template <class T, std::size_t N, class Layout>
class program {
 public:
  using array = ooc_array<T, N, Layout>;
  using index = coordinates<N>;

  program(round& r, std::shared_ptr<process_group> group, const store& s, std::uint64_t staging)
      : r_(r), g_(r.dice()), group_(std::move(group)), store_(s) {
    extents_ = draw_extents<N>(g_, 60000 / sizeof(T));
    options_.block = 4096 * draw(g_, 1, 2);
    options_.owner_computes = r.one_in(3);
    if (r.one_in(3)) options_.order = file_order::tiled;
    if (options_.order == file_order::tiled || !Layout::contiguous)
      options_.tile = draw_tile<N>(g_, extents_, sizeof(T));
    if (r.one_in(2)) options_.fill = value_of<T>(99);
    if (r.one_in(2)) options_.stripes.sf = 4096 * draw(g_, 1, 4);
    if (r.one_in(2)) options_.max_extents = testing::some_limits<Layout>(g_, extents_, options_);
    options_.group = group_;
    runtime_options o;
    o.memory = staging + 4096 * draw(g_, 40, 90);
    o.read_ahead = static_cast<unsigned>(draw(g_, 0, 3));
    rt_.emplace(o);
    a_.emplace(*rt_, store_, "ranks", create, extents_, options_);
    plain_.assign(a_->size(), options_.fill.value_or(T{}));
    writer_.assign(plain_.size(), nobody);
  }

  void run() {
    for (std::uint64_t n = draw(g_, 4, 16); n > 0; --n) {
      ++epoch_;
      // First who writes what, for a rank may be ahead of another; then the same dice again.
      const std::mt19937_64 before = g_;
      for (const bool plan : {true, false}) {
        g_ = before;
        for (int k = 6 * group_->size(); k > 0; --k) one(plan);
      }
      end_of_epoch();
    }
    for (int again = 0; again < 2; ++again) {
      a_->close();
      std::fill(writer_.begin(), writer_.end(), nobody);
      a_.emplace(*rt_, store_, "ranks", open, extents_, options_);
      compare(a_->whole());
    }
    a_->close();
  }

 private:
  static constexpr int nobody = -1;

  int rank() const { return group_->rank(); }
  box<N> any_box() { return draw_box<N>(g_, extents_); }

  [[noreturn]] void wrong(std::size_t at, const T& got, const char* how) {
    std::ostringstream s;
    s << "rank " << rank() << " of " << group_->size() << ", epoch " << epoch_ << ", " << how << ": element " << at
      << " reads " << hex(got) << ", not " << hex(plain_[at]) << " (" << element_type<T>::name() << " {";
    for (const std::size_t e : extents_) s << e << ",";
    s << "} block " << options_.block << (options_.owner_computes ? " owner_computes" : "") << ")";
    throw finding(verdict::wrong, s.str());
  }

  void compare(const box<N>& b) {
    each_of<N>(b, extents_, [&](const index& c, std::size_t at) {
      if (writer_[at] != nobody && writer_[at] != rank()) return;
      const T got = std::as_const(*a_).element(c);
      if (!same(got, plain_[at])) wrong(at, got, "element access");
    });
  }

  box<N> within_part(box<N> b, int who) const {
    if (!options_.owner_computes) return b;
    const box<N> part = a_->part(who);
    b.lower[0] = std::clamp(b.lower[0], part.lower[0], part.upper[0]);
    b.upper[0] = std::clamp(b.upper[0], part.lower[0], part.upper[0]);
    return b;
  }

  void claim(std::size_t at, int who) {
    if (writer_[at] == nobody) writer_[at] = who;
  }

  /// One rank does something, and all know it.
  void one(bool plan) {
    const int who = static_cast<int>(draw(g_, 0, static_cast<std::uint64_t>(group_->size()) - 1));
    const bool mine = who == rank();
    box<N> b = any_box();
    const std::uint64_t salt = draw(g_, 0, 2) == 0 ? draw(g_, 0, 3) : g_();
    const std::uint64_t every = draw(g_, 1, 3);
    const std::uint64_t what = draw(g_, 0, 11);
    if (plan) {
      if (what < 5)
        each_of<N>(within_part(b, who), extents_, [&](const index&, std::size_t at) {
          if (at % every == 0) claim(at, who);  // like a comb: others may get the gaps
        });
      else if (what < 6 && !within_part(b, who).empty())
        claim(place_of<N>(within_part(b, who).lower, extents_), who);
      return;
    }
    if (mine) ++r_.counts().operations;
    if (what < 5) {
      b = within_part(b, who);
      std::uint64_t written = 0;
      each_of<N>(b, extents_, [&](const index& c, std::size_t at) {
        if (writer_[at] != who) return;
        // Few values, many of them what was there before: differences are easily missed.
        plain_[at] = value_of<T>(salt < 4 ? salt : salt + at);
        ++written;
        if (mine) a_->element(c) = plain_[at];
      });
      if (mine) r_.counts().acknowledged_bytes += written * sizeof(T);
    } else if (what < 6) {
      pinned(who, b, salt);
    } else if (what < 9) {
      if (mine) compare(b);
    } else if (what < 10) {
      if (mine) a_->prefetch(b);
    } else {
      if (mine) a_->writeback();
    }
  }

  /// A pin for writing of which only one element is changed, and a writeback while it lives.
  void pinned(int who, box<N> b, std::uint64_t salt) {
    b = within_part(b, who);
    if (b.empty()) return;
    const index c = b.lower;
    const std::size_t at = place_of<N>(c, extents_);
    if (writer_[at] != who) return;
    const T before = plain_[at];
    plain_[at] = value_of<T>(salt);
    const bool back = salt % 2 == 0;
    if (who == rank()) {
      for (std::size_t k = 0; k < N; ++k) b.upper[k] = b.lower[k] + 1;
      try {
        auto p = a_->pin(b);
        *p.rows()[0].data() = plain_[at];
        a_->writeback();
      } catch (const usage_error& e) {
        if (e.code() != errc::budget_too_small) throw;
        a_->element(c) = plain_[at];
      }
      if (back) a_->element(c) = before;
    }
    if (back) plain_[at] = before;
  }

  void end_of_epoch() {
    switch (draw(g_, 0, 9)) {
      case 0:
        a_->writeback();
        MPI_Barrier(MPI_COMM_WORLD);
        a_->invalidate();
        MPI_Barrier(MPI_COMM_WORLD);
        break;
      case 1: a_->sync(durable); break;
      case 2:
        if (!options_.max_extents.empty()) {
          resize();
          break;
        }
        [[fallthrough]];
      case 3: return together();
      case 4:
      case 5:
      case 6: return halo();
      default: a_->sync();
    }
    // Nothing after a sync, and before what others write then: all ranks compare first.
    std::fill(writer_.begin(), writer_.end(), nobody);
    compare(a_->whole());
    a_->sync();
  }

  void resize() {
    const index extents = testing::some_extents(g_, *a_, options_);
    a_->resize(extents);
    plain_ = testing::resized(plain_, extents_, extents, options_.fill.value_or(T{}));
    extents_ = extents;
    writer_.assign(plain_.size(), nobody);
  }

  void halo() {
    const std::size_t rows = draw(g_, 0, 3);
    a_->sync_halo(rows);
    const std::size_t row = plain_.size() / extents_[0];
    for (int p = 1; p < group_->size(); ++p) {
      const box<N> part = a_->part(p);
      if (part.empty() || part.lower[0] == 0) continue;
      const std::size_t begin = part.lower[0] < rows ? 0 : part.lower[0] - rows;
      const std::size_t end = std::min(part.lower[0] + rows, extents_[0]);
      for (std::size_t at = begin * row; at < end * row; ++at) writer_[at] = nobody;
    }
    compare(a_->whole());
    // The next epoch must not write what another rank is still reading here.
    MPI_Barrier(MPI_COMM_WORLD);
  }

  /// Boxes of all ranks at once; those that are written do not overlap.
  void together() {
    const auto size = static_cast<std::size_t>(group_->size());
    const std::size_t d = draw(g_, 0, N - 1);
    box<N> whole = any_box();
    const std::size_t width = (whole.extent(d) + size - 1) / size;
    box<N> mine{};
    const std::uint64_t salt = g_();
    for (std::size_t p = 0; p < size; ++p) {
      box<N> b = whole;
      b.lower[d] = std::min(whole.lower[d] + p * width, whole.upper[d]);
      b.upper[d] = std::min(b.lower[d] + width, whole.upper[d]);
      if (static_cast<int>(p) == rank()) mine = b;
    }
    const bool writes = draw(g_, 0, 1) == 0;
    std::vector<T> memory(mine.size());
    if (writes) {
      // What ranks wrote in this epoch stays as well, where no box covers it.
      each_of<N>(whole, extents_, [&](const index&, std::size_t at) { plain_[at] = value_of<T>(salt + at); });
      std::size_t n = 0;
      each_of<N>(mine, extents_, [&](const index&, std::size_t at) { memory[n++] = plain_[at]; });
      a_->write_all(mine, memory);
      each_of<N>(whole, extents_, [&](const index&, std::size_t at) { writer_[at] = nobody; });
      compare(whole);
    } else {
      const box<N> b = any_box();
      mine = draw(g_, 0, 1) == 0 ? mine : b;  // all the same box, or one for each
      memory.resize(mine.size());
      a_->read_all(mine, memory);
      std::size_t n = 0;
      each_of<N>(mine, extents_, [&](const index&, std::size_t at) {
        if (!same(memory[n], plain_[at])) wrong(at, memory[n], "read_all");
        ++n;
      });
    }
    a_->sync();
    std::fill(writer_.begin(), writer_.end(), nobody);
    compare(a_->whole());
    a_->sync();
  }

  round& r_;
  std::mt19937_64& g_;
  std::shared_ptr<process_group> group_;
  store store_;
  std::optional<runtime> rt_;
  index extents_{};
  array_options<T> options_;
  std::vector<T> plain_;
  std::vector<int> writer_;  ///< rank that writes the element in this epoch
  std::optional<array> a_;
  int epoch_ = 0;
};

void run_ranks(round& r, const std::string& url) {
  const auto world = mpi_group(MPI_COMM_WORLD, {.deadline = std::chrono::seconds(60)});
  store_options so;
  so.workers = 1;
  so.staging = 64_KiB;
  // Rank 0 makes the store.
  if (world->rank() == 0) store::open(url, so);
  world->barrier("the store is there");
  const store s = store::open(url, so);
  const std::uint64_t staging = s.nodes() * so.staging;
  const auto run = [&]<class P>(std::type_identity<P>) { P(r, world, s, staging).run(); };
  switch (r.between(0, 4)) {
    case 0: return run(std::type_identity<program<double, 1, layout_right>>{});
    case 1: return run(std::type_identity<program<record24, 2, layout_right>>{});
    case 2: return run(std::type_identity<program<std::uint8_t, 2, layout_tiled>>{});
    case 3: return run(std::type_identity<program<std::complex<double>, 3, layout_right>>{});
    default: return run(std::type_identity<program<std::int32_t, 2, layout_tiled>>{});
  }
}

void write_history_together(const std::string& url, std::uint64_t seed, totals& t, rank_board& board) {
  const auto world = mpi_group(MPI_COMM_WORLD, {.deadline = std::chrono::seconds(60)});
  const auto rank = static_cast<std::size_t>(world->rank());
  const auto ranks = static_cast<std::size_t>(world->size());
  board.pids[rank] = ::getpid();
  const rank_plan plan(seed, url, t);
  if (rank == 0) open_store(plan.how);
  world->barrier("the store is there");
  const store s = open_store(plan.how);
  runtime rt{{.memory = plan.how.memory}};
  array_options<std::uint64_t> options;
  options.block = plan.how.block;
  options.sparse = plan.how.sparse;
  options.owner_computes = plan.owner_computes;
  options.group = world;
  ooc_array<std::uint64_t, 1> a{rt, s, plan.how.path, create, {plan.epochs.elements()}, options};
  a.sync(durable);
  if (rank == 0) board.made = true;
  const box<1> part = a.part(world->rank());
  for (std::uint64_t e = 1; e <= plan.epochs.epochs(); ++e) {
    const history::epoch& now = plan.epochs.writes(e);
    std::uint64_t written = 0;
    for (const std::uint32_t i : now.elements) {
      const bool mine = plan.owner_computes ? part.lower[0] <= i && i < part.upper[0] : i % ranks == rank;
      if (!mine) continue;
      a[i] = history::value(e, i);
      ++written;
    }
    now.durable ? a.sync(durable) : a.sync();
    if (rank == 0) board.acknowledged = e;
    t.operations += written;
    t.acknowledged_bytes += written * sizeof(std::uint64_t);
    testing::let_pass(plan.how.pause);  // so that it lasts until it is disturbed
  }
  a.close();
}

void commit_together(const std::string& url, std::uint64_t seed, totals& t, rank_board& board) {
  const auto world = mpi_group(MPI_COMM_WORLD, {.deadline = std::chrono::seconds(60)});
  commit_plan(seed, url, t).run(board, world);
}

/// Errors are no findings here: other ranks may have been killed.
void write_and_abort(int argc, char** argv) {
  try {
    const auto write = argc == 5 ? write_history_together : commit_together;
    write(argv[1], std::stoull(argv[2]), map_totals(argv[3]), map_rank_board(argv[4]));
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

void run_and_tell(char** argv) {
  totals& t = map_totals(argv[3]);
  try {
    round r(std::stoull(argv[2]), ".", t);
    run_ranks(r, argv[1]);
  } catch (const finding& f) {
    round::tell(t, f.what_it_is, f.what());
    std::cerr << f.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, round::found);
  } catch (const std::exception& e) {
    round::tell(t, verdict::failed, std::string("unexpected: ") + e.what());
    std::cerr << e.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, round::found);
  }
}

}  // namespace

}  // namespace ooc::attack

int main(int argc, char** argv) {
  if (argc < 4 || argc > 6) {
    std::cerr << "usage: attack_ranks URL SEED TOTALS (scripts/attack calls it)\n";
    return 2;
  }
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  if (argc > 4)
    ooc::attack::write_and_abort(argc, argv);
  else
    ooc::attack::run_and_tell(argv);
  MPI_Finalize();
  return 0;
}
