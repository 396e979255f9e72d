// Random programs on several ranks against one plain array that every rank keeps.
//
// All ranks draw the same numbers, so each knows what every other does: which boxes each writes in
// an epoch (elements are given to whoever asks first), and how the epoch ends: by sync(), in the
// papers' form, by resize(), or by sync_halo(), after which what lies elsewhere is still the writer's
// alone.  A rank reads any element that no other rank writes in the epoch, and compares.
#include <catch2/catch.hpp>

#include "mpi/ranks.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/random_boxes.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using testing::between;
using testing::triple;
using testing::value_of;

namespace {

template <class T, std::size_t N, class Layout>
class program {
 public:
  using array = ooc_array<T, N, Layout>;

  program(std::mt19937_64& g, std::shared_ptr<process_group> group)
      : g_(g), group_(std::move(group)), store_(testing::common_store()) {
    std::size_t left = 60000 / sizeof(T);
    for (std::size_t k = 0; k < N; ++k) {
      extents_[k] = between(g_, 1, std::max<std::size_t>(1, N == 1 ? left : std::min<std::size_t>(left, 90)));
      left = std::max<std::size_t>(1, left / extents_[k]);
    }
    options_.block = 4096 * between(g_, 1, 2);
    options_.owner_computes = between(g_, 0, 2) == 0;
    if (between(g_, 0, 2) == 0) options_.order = file_order::tiled;
    if (!Layout::contiguous || options_.order == file_order::tiled) {
      std::size_t room = 8192 / std::bit_ceil(sizeof(T));
      for (std::size_t k = 0; k < N; ++k) {
        const std::size_t t =
            std::min<std::size_t>(room, std::size_t{1} << between(g_, 0, std::bit_width(extents_[k])));
        options_.tile.push_back(t);
        room /= t;
      }
      options_.tile.back() *= std::bit_ceil(std::max<std::size_t>(1, room / 8));
    }
    if (between(g_, 0, 1) == 0) options_.stripes.sf = 4096 * between(g_, 1, 4);
    if (between(g_, 0, 1) == 0) options_.max_extents = testing::some_limits<Layout>(g_, extents_, options_);
    options_.replace = true;
    options_.group = group_;
    runtime_options o;
    o.memory = store_.core()->staging_bytes() + 4096 * between(g_, 24, 60);
    o.read_ahead = static_cast<unsigned>(between(g_, 0, 3));
    rt_.emplace(o);
    a_.emplace(*rt_, store_, "model/array", create, extents_, options_);
    plain_.assign(a_->size(), T{});
    writer_.assign(a_->size(), -1);
  }

  std::string describe() const { return testing::describe(extents_, options_, rt_->memory()); }

  void run(int epochs) {
    for (int e = 0; e < epochs; ++e) {
      epoch_ = e;
      plan();
      work();
      end_of_epoch();
    }
    a_->close();  // which shows all that was written
    a_.emplace(*rt_, store_, "model/array", open, extents_, options_);
    std::fill(writer_.begin(), writer_.end(), -1);
    compare(a_->whole());
    a_->close();
  }

 private:
  struct step {
    int rank;
    enum { write, scatter, accumulate, read, gather, prefetch, writeback } what;
    box<N> where;
    std::uint64_t salt;
  };

  box<N> random_box() { return testing::random_box<N>(g_, extents_); }
  template <class F>
  void for_each(const box<N>& b, F&& f) const {
    testing::for_each_element<N>(b, extents_, std::forward<F>(f));
  }

  /// A plan of what every rank will do, and who may write which element.
  void plan() {
    steps_.clear();
    const int size = group_->size();
    for (int n = 4 * size; n > 0; --n) {
      step s{static_cast<int>(between(g_, 0, static_cast<std::uint64_t>(size) - 1)), step::read, random_box(), g_()};
      const std::uint64_t kind = between(g_, 0, 9);
      const std::uint64_t way = between(g_, 0, 3);
      s.what = kind < 4   ? (way == 0   ? step::scatter
                             : way == 1 ? step::accumulate
                                        : step::write)
               : kind < 8 ? (way == 0 ? step::gather : step::read)
               : kind < 9 ? step::prefetch
                          : step::writeback;
      if (s.what <= step::accumulate) {
        if (options_.owner_computes) {
          const box<N> part = a_->part(s.rank);
          s.where.lower[0] = std::max(s.where.lower[0], part.lower[0]);
          s.where.upper[0] = std::min(s.where.upper[0], part.upper[0]);
        }
        // Some boxes are written like a comb: others may get the gaps.
        const std::uint64_t every = between(g_, 1, 3);
        for_each(s.where, [&](const coordinates<N>&, std::size_t at) {
          if (writer_[at] < 0 && at % every == 0) writer_[at] = s.rank;
        });
      }
      steps_.push_back(s);
    }
    const std::uint64_t end = between(g_, 0, 7);
    ending_ = end == 0 ? ending::papers : end == 1 ? ending::resize : end < 5 ? ending::halo : ending::sync;
  }

  void work() {
    for (const step& s : steps_) {
      const bool mine = s.rank == group_->rank();
      switch (s.what) {
        case step::write:
          for_each(s.where, [&](const coordinates<N>& c, std::size_t at) {
            if (writer_[at] != s.rank) return;
            plain_[at] = value_of<T>(s.salt + at);
            if (mine) a_->element(c) = plain_[at];
          });
          break;
        case step::scatter:
        case step::accumulate: {
          std::vector<coordinates<N>> where;
          std::vector<T> values;
          for_each(s.where, [&](const coordinates<N>& c, std::size_t at) {
            if (writer_[at] != s.rank) return;
            plain_[at] = value_of<T>(s.salt + at);
            where.push_back(c);
            values.push_back(plain_[at]);
          });
          if (!mine) break;
          if (s.what == step::scatter)
            a_->scatter(where, values);
          else
            a_->accumulate(where, values, [](const T&, const T& value) { return value; });
          break;
        }
        case step::read:
          if (mine) compare(s.where);
          break;
        case step::gather:
          if (mine) compare_gathered(s.where);
          break;
        case step::prefetch:
          if (mine) a_->prefetch(s.where);
          break;
        case step::writeback:
          if (mine) a_->writeback();
          break;
      }
    }
  }

  void end_of_epoch() {
    switch (ending_) {
      case ending::halo: {
        const std::size_t rows = between(g_, 0, 3);
        a_->sync_halo(rows);
        show_borders(rows);
        return;
      }
      case ending::sync: a_->sync(); break;
      case ending::papers:
        a_->writeback();
        MPI_Barrier(MPI_COMM_WORLD);
        a_->invalidate();
        break;
      case ending::resize: {
        const coordinates<N> extents = testing::some_extents(g_, *a_, options_);
        a_->resize(extents);
        plain_ = testing::resized(plain_, extents_, extents, T{});
        extents_ = extents;
        REQUIRE(a_->extents() == extents_);
        writer_.assign(plain_.size(), -1);
        compare(a_->whole());
        group_->barrier("all have compared");  // who is ahead may write what others still read
      }
    }
    std::fill(writer_.begin(), writer_.end(), -1);
  }

  /// Nobody is the writer of rows beside a border any longer.
  void show_borders(std::size_t rows) {
    for (int r = 0; r < group_->size(); ++r) {
      const box<N> part = a_->part(r);
      const std::size_t border = part.lower[0];
      if (border == 0 || border == part.upper[0]) continue;
      box<N> shown = a_->whole();
      shown.lower[0] = border - std::min(border, rows);
      shown.upper[0] = std::min(border + rows, extents_[0]);
      for_each(shown, [&](const coordinates<N>&, std::size_t at) { writer_[at] = -1; });
    }
  }

  void compare(const box<N>& b) {
    std::size_t wrong = 0;
    for_each(b, [&](const coordinates<N>& c, std::size_t at) {
      if (writer_[at] < 0 || writer_[at] == group_->rank()) wrong += !(std::as_const(*a_).element(c) == plain_[at]);
    });
    INFO("epoch " << epoch_);
    REQUIRE(wrong == 0);
  }

  void compare_gathered(const box<N>& b) {
    std::vector<std::size_t> flat;
    for_each(b, [&](const coordinates<N>&, std::size_t at) {
      if (writer_[at] < 0 || writer_[at] == group_->rank()) flat.push_back(at);
    });
    std::shuffle(flat.begin(), flat.end(), std::mt19937_64(flat.size()));  // of this rank only
    std::vector<T> found(flat.size());
    std::as_const(*a_).gather(flat, found);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < flat.size(); ++i) wrong += !(found[i] == plain_[flat[i]]);
    INFO("epoch " << epoch_);
    REQUIRE(wrong == 0);
  }

  std::mt19937_64& g_;
  std::shared_ptr<process_group> group_;
  ooc::store store_;
  std::optional<runtime> rt_;
  coordinates<N> extents_{};
  array_options<T> options_;
  std::vector<T> plain_;
  std::vector<int> writer_;  ///< rank that writes the element in this epoch; -1: nobody
  std::vector<step> steps_;
  enum class ending { sync, papers, resize, halo } ending_ = ending::sync;
  std::optional<array> a_;
  int epoch_ = 0;
};

}  // namespace

TEMPLATE_TEST_CASE_SIG("random programs on many ranks read what one array would hold", "",
                       ((class T, std::size_t N, class Layout), T, N, Layout), (double, 1, layout_right),
                       (triple, 2, layout_right), (std::uint8_t, 2, layout_tiled),
                       (std::complex<double>, 3, layout_right), (std::int32_t, 2, layout_tiled),
                       (triple, 3, layout_tiled)) {
  const int programs = testing::rounds(4, 60);
  const auto group = testing::all_ranks();
  std::mt19937_64 g = testing::common_source(sizeof(T) * 64 + N * 8 + Layout::contiguous);
  for (int n = 0; n < programs; ++n) {
    program<T, N, Layout> p(g, group);
    INFO("replay with OOC_TEST_SEED=" << testing::common_seed() << ", program " << n << ": " << p.describe());
    p.run(12);
  }
}
