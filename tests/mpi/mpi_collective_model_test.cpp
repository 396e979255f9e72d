// Random boxes that all ranks read and write together, against one plain array that every rank
// keeps.
//
// All ranks draw the same numbers.  Boxes are cut from a random grid over the array, whose cells go
// to ranks at random or cyclically, so that they are disjoint and interleave; both routes are
// taken.
#include <catch2/catch.hpp>

#include "mpi/ranks.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/collective/collective_transfer.hpp"
#include "support/random_boxes.hpp"
#include "support/random_requests.hpp"
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
    std::size_t left = 200000 / std::max(sizeof(T), sizeof(double));
    for (std::size_t k = 0; k < N; ++k) {
      const std::size_t most = N == 1 ? left : std::min<std::size_t>(left, 300);
      extents_[k] = between(g_, std::min<std::size_t>(most, 5), most);
      left = std::max<std::size_t>(1, left / extents_[k]);
    }
    options_.block = 4096 * between(g_, 1, 3);
    options_.stripes.sf = 4096 * between(g_, 1, 4);
    if (between(g_, 0, 2) == 0) options_.order = file_order::tiled;
    if (!Layout::contiguous || options_.order == file_order::tiled)
      for (std::size_t k = 0; k < N; ++k) options_.tile.push_back(std::size_t{1} << between(g_, 1, N == 3 ? 3 : 4));
    if (!Layout::contiguous) {
      while (sizeof(T) * options_.tile[0] < 64) options_.tile[0] *= 2;
      // A loop over rows visits each tile once a row: narrow tiles of bytes would make a test of faults.
      while (sizeof(T) * options_.tile.back() < 16) options_.tile.back() *= 2;
    }
    options_.owner_computes = between(g_, 0, 3) == 0;
    options_.replace = true;
    options_.group = group_;
    runtime_options o;
    o.memory = store_.core()->staging_bytes() + 4096 * between(g_, 90, 400);
    rt_.emplace(o);
    a_.emplace(*rt_, store_, "model/collective", create, extents_, options_);
    plain_.assign(a_->size(), T{});
  }

  std::string describe() const { return testing::describe(extents_, options_, rt_->memory()); }

  void run(int steps) {
    for (step_ = 0; step_ < steps; ++step_) {
      if (between(g_, 0, 1) == 0)
        write_together();
      else
        read_together();
      if (between(g_, 0, 2) == 0) write_own_rows();
      if (between(g_, 0, 2) == 0) overwrite_own_rows();
      if (between(g_, 0, 2) == 0) {
        a_->sync();
        look(random_box());
      }
    }
    a_->sync();
    look(a_->whole());
    a_->close();
  }

 private:
  box<N> random_box() { return testing::random_box<N>(g_, extents_); }
  template <class F>
  void for_each(const box<N>& b, F&& f) const {
    testing::for_each_element<N>(b, extents_, std::forward<F>(f));
  }

  /// A box for each rank: neighbours along one dimension of a random box, or nothing.
  std::vector<box<N>> disjoint_boxes() {
    const auto ranks = static_cast<std::size_t>(group_->size());
    const box<N> whole = random_box();
    const std::size_t along = between(g_, 0, N - 1);
    std::vector<std::size_t> cuts{whole.lower[along], whole.upper[along]};
    while (cuts.size() < ranks + 1) cuts.push_back(between(g_, cuts[0], cuts[1]));
    std::sort(cuts.begin(), cuts.end());
    std::vector<box<N>> boxes(ranks, whole);
    for (std::size_t r = 0; r < ranks; ++r) {
      boxes[r].lower[along] = cuts[r];
      boxes[r].upper[along] = cuts[r + 1];
      if (between(g_, 0, 7) == 0) boxes[r] = {};
    }
    std::shuffle(boxes.begin(), boxes.end(), g_);
    return boxes;
  }

  void write_together() {
    const std::vector<box<N>> boxes = disjoint_boxes();
    const std::uint64_t salt = g_();
    std::vector<T> mine;
    for (std::size_t r = 0; r < boxes.size(); ++r)
      for_each(boxes[r], [&](const coordinates<N>&, std::size_t at) {
        plain_[at] = value_of<T>(salt + at);
        if (static_cast<int>(r) == group_->rank()) mine.push_back(plain_[at]);
      });
    const box<N>& own = boxes[static_cast<std::size_t>(group_->rank())];
    a_->write_all(own, mine);
    look(own);
    look(boxes[(static_cast<std::size_t>(group_->rank()) + 1) % boxes.size()]);
  }

  void read_together() {
    std::vector<box<N>> boxes = disjoint_boxes();
    for (box<N>& b : boxes)
      if (between(g_, 0, 3) == 0) b = random_box();
    const box<N>& own = boxes[static_cast<std::size_t>(group_->rank())];
    std::vector<T> expected, found(own.size());
    for_each(own, [&](const coordinates<N>&, std::size_t at) { expected.push_back(plain_[at]); });
    a_->read_all(own, found);
    INFO("step " << step_);
    REQUIRE(found == expected);
  }

  /// By element accesses, and not written back: others see it by read_all(), or after a sync.
  void write_own_rows() {
    group_->barrier("all have looked");  // who is ahead may write back before others have read
    const std::uint64_t salt = g_();
    for (int r = 0; r < group_->size(); ++r) {
      const box<N> part = a_->part(r);
      for_each(part, [&](const coordinates<N>& c, std::size_t at) {
        if ((at + salt) % 5 != 0) return;
        plain_[at] = value_of<T>(salt + at);
        if (r == group_->rank()) a_->element(c) = plain_[at];
      });
    }
  }

  /// Each rank promises to overwrite rows of its own: some elements are written one by one, some by
  /// write_all() of whatever rank, and then all that are left.
  void overwrite_own_rows() {
    group_->barrier("all have looked");
    const auto me = static_cast<std::size_t>(group_->rank());
    std::vector<box<N>> promised;
    for (int r = 0; r < group_->size(); ++r) {
      box<N> b = random_box();
      const box<N> part = a_->part(r);
      b.lower[0] = std::clamp(b.lower[0], part.lower[0], part.upper[0]);
      b.upper[0] = std::clamp(b.upper[0], part.lower[0], part.upper[0]);
      promised.push_back(b);
    }
    const std::vector<box<N>> boxes = disjoint_boxes();
    const std::uint64_t salt = g_(), of = between(g_, 2, 200);
    std::vector<bool> written(plain_.size());
    std::vector<T> mine;
    a_->overwrite(promised[me]);
    const auto write = [&](std::uint64_t kind, auto&& when) {
      for (std::size_t r = 0; r < promised.size(); ++r)
        for_each(promised[r], [&](const coordinates<N>& c, std::size_t at) {
          if (!when(at)) return;
          written[at] = true;
          plain_[at] = value_of<T>(salt + kind + at);
          if (r == me) a_->element(c) = plain_[at];
        });
    };
    write(1, [&](std::size_t at) { return (at / 50 + salt) % of == 0; });
    for (std::size_t r = 0; r < boxes.size(); ++r)
      for_each(boxes[r], [&](const coordinates<N>&, std::size_t at) {
        written[at] = true;
        plain_[at] = value_of<T>(salt + 2 + at);
        if (r == me) mine.push_back(plain_[at]);
      });
    a_->write_all(boxes[me], mine);
    write(3, [&](std::size_t at) { return !written[at]; });
  }

  void look(const box<N>& b) const {
    std::size_t wrong = 0;
    for_each(b,
             [&](const coordinates<N>& c, std::size_t at) { wrong += !(std::as_const(*a_).element(c) == plain_[at]); });
    INFO("step " << step_);
    REQUIRE(wrong == 0);
  }

  std::mt19937_64& g_;
  std::shared_ptr<process_group> group_;
  ooc::store store_;
  std::optional<runtime> rt_;
  coordinates<N> extents_{};
  array_options<T> options_;
  std::vector<T> plain_;
  std::optional<array> a_;
  int step_ = 0;
};

}  // namespace

TEMPLATE_TEST_CASE_SIG("random boxes that all ranks read and write together are those of one array", "",
                       ((class T, std::size_t N, class Layout), T, N, Layout), (double, 1, layout_right),
                       (triple, 2, layout_right), (std::uint8_t, 2, layout_tiled),
                       (std::complex<double>, 3, layout_right), (triple, 3, layout_tiled)) {
  const int programs = testing::rounds(4, 60);
  const auto group = testing::all_ranks();
  std::mt19937_64 g = testing::common_source(1000 + sizeof(T) * 64 + N * 8 + Layout::contiguous);
  for (int n = 0; n < programs; ++n) {
    program<T, N, Layout> p(g, group);
    INFO("replay with OOC_TEST_SEED=" << testing::common_seed() << ", program " << n << ": " << p.describe());
    p.run(12);
  }
}

TEST_CASE("both routes move the same bytes, in windows of any size") {
  const auto group = testing::all_ranks();
  const auto ranks = static_cast<std::uint64_t>(group->size());
  const auto me = static_cast<std::uint64_t>(group->rank());
  std::mt19937_64 g = testing::common_source(77);
  const store s = testing::common_store();
  for (int n = 0; n < 20; ++n) {
    const std::uint64_t size = between(g, 1, 300000);
    const std::vector<request> wanted = testing::random_requests(g, size, ranks);
    const bool leads = me == 0;
    storage::new_file shape;
    shape.size = size;
    shape.striping = {.sn = 0, .nn = 2, .sf = 4096 * between(g, 1, 5)};
    if (leads) s.core()->create("routes", shape);
    group->barrier("made");
    const storage::opened_file f = s.core()->open("routes", storage::open_mode::read_write);
    std::vector<std::byte> out(wanted[me].memory_end()), in(out.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>(i * 13 + me * 101 + static_cast<std::uint64_t>(n) + 1);
    const std::uint64_t round = between(g, 1, 200000);
    const auto transfer = [&](access_kind kind, std::byte* memory, storage::strategy how) {
      storage::transfer_collectively(*f.file,
                                     {.group = *group,
                                      .call = "transfer " + std::to_string(n),
                                      .kind = kind,
                                      .wanted = wanted,
                                      .memory = memory,
                                      .round_bytes = round},
                                     how);
    };
    const bool exchanges = between(g, 0, 1) == 0;
    transfer(access_kind::write, out.data(), exchanges ? storage::strategy::two_phase : storage::strategy::independent);
    transfer(access_kind::read, in.data(), exchanges ? storage::strategy::independent : storage::strategy::two_phase);
    std::size_t wrong = 0;
    wanted[me].for_each_run([&](std::uint64_t, std::uint64_t m, std::uint64_t length) {
      for (std::uint64_t i = m; i < m + length; ++i) wrong += in[i] != out[i];
    });
    INFO("replay with OOC_TEST_SEED=" << testing::common_seed() << ", file " << n);
    REQUIRE(wrong == 0);
    if (leads) {  // nothing was written that nobody has
      std::vector<std::byte> all(size);
      REQUIRE_FALSE(f.file->read(request::contiguous(0, size), all.data()));
      for (const request& r : wanted)
        r.for_each_run([&](std::uint64_t at, std::uint64_t, std::uint64_t length) {
          std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(at), length, std::byte{});
        });
      CHECK(std::count(all.begin(), all.end(), std::byte{}) == static_cast<std::ptrdiff_t>(size));
      s.core()->remove("routes");
    }
    group->barrier("removed");
  }
}
