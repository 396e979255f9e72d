// Random programs of one process: one to three arrays under one tight budget, compared with plain
// vectors element by element.
#include <array>
#include <chrono>
#include <iostream>
#include <optional>
#include <thread>

#include "attack/elements.hpp"
#include "attack/round.hpp"
#include "support/random_boxes.hpp"

namespace ooc::attack {

namespace {

struct one_array {
  virtual ~one_array() = default;
  virtual void step() = 0;
  virtual void finish() = 0;
};

template <class T, std::size_t N, class Layout>
class program final : public one_array {
 public:
  using array = ooc_array<T, N, Layout>;
  using index = coordinates<N>;

  program(round& r, runtime& rt, const store& s, std::string name)
      : r_(r), g_(r.dice()), rt_(rt), store_(s), name_(std::move(name)) {
    // Blocks of 64 KiB and more may be in memory in grains.
    const bool large = sizeof(T) >= 4 && Layout::contiguous && r.one_in(3);
    extents_ = large ? draw_extents<N>(g_, 1'000'000 / sizeof(T), 400) : draw_extents<N>(g_, 60000 / sizeof(T));
    options_.block = large ? 65536 * draw(g_, 1, 2) : 4096 * draw(g_, 1, 4);
    if (r.one_in(2)) options_.fill = value_of<T>(99);
    if (r.one_in(2)) options_.sparse = true;
    if (r.one_in(2)) options_.stripes.sf = 4096 * draw(g_, 1, 5);
    // A walk over large tiles row by row would load each of them for every row.
    if (!large && r.one_in(3)) options_.order = file_order::tiled;
    if (options_.order == file_order::tiled || !Layout::contiguous)
      options_.tile = draw_tile<N>(g_, extents_, sizeof(T));
    if (r.one_in(2)) options_.max_extents = testing::some_limits<Layout>(g_, extents_, options_);
    if (r.one_in(4)) options_.buffers = draw(g_, 4, 14);
    options_.shared = r.one_in(3);
    options_.replace = true;
    a_.emplace(rt_, store_, name_, create, extents_, options_);
    plain_.assign(a_->size(), options_.fill.value_or(T{}));
  }

  void step() override {
    ++step_;
    ++r_.counts().operations;
    switch (draw(g_, 0, 28)) {
      case 0:
      case 1:
      case 2: return what_ = "element writes", write_some();
      case 3:
      case 4: return what_ = "element reads", read_some();
      case 5: return what_ = "writing a box", write(any_box());
      case 6: return what_ = "reading a box", compare(any_box());
      case 7:
      case 8: return what_ = "overwrite, kept", keep_promise();
      case 9: return what_ = "overwrite, not kept", break_promise();
      case 10:
      case 11: return what_ = "writeback", write_back(durability::acknowledged);
      case 12: return what_ = "durable writeback", write_back(durable);
      case 13: return what_ = "invalidate", forget();
      case 14: return what_ = "prefetch", a_->prefetch(any_box());
      case 15:
      case 16: return what_ = "pin", pin();
      case 17: return what_ = "writing what is pinned", write_pinned();
      case 18: return what_ = "unpin", unpin();
      case 19: return what_ = "resize", resize();
      case 20: return what_ = "reopen", reopen();
      case 21: return what_ = "read_all", read_together();
      case 22: return what_ = "write_all", write_together(any_box());
      case 23: return r_.one_in(2) ? (what_ = "threads", two_threads()) : (what_ = "discard", discard_changes());
      case 24:
      case 25: return what_ = "gather", gather();
      case 26: return what_ = "scatter", scatter();
      case 27: return what_ = "accumulate", accumulate();
      case 28: return what_ = "advise", advise();
    }
  }

  void finish() override {
    what_ = "the end";
    pins_.clear();
    compare(a_->whole());
    close_and_open();
    compare(a_->whole());
    a_->close();
  }

 private:
  struct held_pin {
    std::optional<pin_guard<T>> writing;
    std::optional<pin_guard<const T>> reading;
    std::vector<const T*> at;
    std::vector<std::size_t> places;
  };

  box<N> any_box() { return draw_box<N>(g_, extents_); }
  std::size_t place(const index& c) const { return place_of<N>(c, extents_); }
  /// Often one that was there before: a difference to an old copy is then easily missed.
  T any_value() { return value_of<T>(draw(g_, 0, 1) ? draw(g_, 0, 3) : ++serial_); }

  [[noreturn]] void wrong(std::size_t at, const T& got) {
    std::ostringstream s;
    s << element_type<T>::name() << " {";
    for (const std::size_t e : extents_) s << e << ",";
    s << "} tile {";
    for (const std::size_t t : options_.tile) s << t << ",";
    s << "} block " << options_.block << " buffers " << options_.buffers << (options_.shared ? " shared" : "") << " in "
      << rt_.memory() << " bytes, step " << step_ << " (" << what_ << "): element " << at << " reads " << hex(got)
      << ", written was " << hex(plain_[at]);
    throw finding(verdict::wrong, s.str());
  }
  void check(std::size_t at, const T& got) {
    if (!same(got, plain_[at])) wrong(at, got);
  }
  void compare(const box<N>& b) {
    each_of<N>(b, extents_, [&](const index& c, std::size_t at) { check(at, std::as_const(*a_).element(c)); });
  }
  void set(const index& c, std::size_t at) { a_->element(c) = plain_[at] = any_value(); }
  void write(const box<N>& b) {
    each_of<N>(b, extents_, [&](const index& c, std::size_t at) { set(c, at); });
  }
  void write_some() {
    for (int n = 0; n < 20; ++n) {
      const index c = draw_element<N>(g_, extents_);
      set(c, place(c));
    }
  }
  void read_some() {
    for (int n = 0; n < 20; ++n) {
      const index c = draw_element<N>(g_, extents_);
      check(place(c), std::as_const(*a_).element(c));
    }
  }

  void write_back(durability d) {
    const std::uint64_t dirty = a_->dirty_blocks();
    a_->writeback(d);
    r_.counts().acknowledged_bytes += dirty * a_->block_bytes();
    if (pins_.empty() && a_->dirty_blocks() != 0) throw finding(verdict::failed, "blocks are dirty after writeback()");
  }
  void forget() {
    if (!pins_.empty()) return refused_while_pinned([&] { a_->invalidate(); });
    write_back(durability::acknowledged);
    a_->invalidate();
    if (r_.one_in(3)) compare(a_->whole());
  }

  void keep_promise() {
    const box<N> b = any_box();
    a_->overwrite(b);
    for (int n = 0; n < 4; ++n) {
      const index c = draw_element<N>(g_, extents_);
      if (b.contains(c)) continue;
      check(place(c), std::as_const(*a_).element(c));
      set(c, place(c));
    }
    const box<N> together = r_.one_in(2) && pins_.empty() ? part_of(b) : box<N>{};
    const bool first = r_.one_in(2);
    if (first && !together.empty()) write_together(together);
    std::vector<index> order;
    each_of<N>(b, extents_, [&](const index& c, std::size_t) {
      if (!together.contains(c)) order.push_back(c);
    });
    // In any order each element may cost a block that goes and one that comes.
    constexpr std::size_t most_out_of_order = 4000;
    if (order.size() <= most_out_of_order && r_.one_in(3)) std::shuffle(order.begin(), order.end(), g_);
    const std::size_t pause = order.empty() ? 0 : draw(g_, 0, 3 * order.size());
    for (std::size_t n = 0; n < order.size(); ++n) {
      set(order[n], place(order[n]));
      if (n == pause) write_back(durability::acknowledged);
    }
    if (!first && !together.empty()) write_together(together);
  }

  /// Elements that are not written after all read as they were, or as zeros.
  void break_promise() {
    const box<N> b = any_box();
    a_->overwrite(b);
    const std::uint64_t every = draw(g_, 2, 50);
    std::vector<std::pair<index, std::size_t>> left;
    each_of<N>(b, extents_, [&](const index& c, std::size_t at) {
      if (draw(g_, 0, every) == 0)
        set(c, at);
      else
        left.emplace_back(c, at);
    });
    if (r_.one_in(2)) write_back(durability::acknowledged);
    for (const auto& [c, at] : left) adopt(at, std::as_const(*a_).element(c), T{});
    a_->clear_overwrite();
  }
  /// Every byte must be as in the copy or as in `other`.
  void adopt(std::size_t at, const T& got, const T& other) {
    const auto bytes = [](const T& v) { return std::as_bytes(std::span(&v, 1)); };
    for (std::size_t i = 0; i < sizeof(T); ++i)
      if (bytes(got)[i] != bytes(plain_[at])[i] && bytes(got)[i] != bytes(other)[i]) wrong(at, got);
    plain_[at] = got;
  }

  /// Some that lie together, some anywhere, some more than once.
  std::vector<std::size_t> places() {
    std::vector<std::size_t> all;
    for (std::uint64_t n = draw(g_, 1, 300); n > 0; --n)
      all.push_back(!all.empty() && r_.one_in(3) ? std::min(plain_.size() - 1, all.back() + draw(g_, 0, 2))
                                                 : draw(g_, 0, plain_.size() - 1));
    return all;
  }
  /// A call that may want more memory than there is.
  template <class F>
  bool within_budget(F&& f) {
    try {
      f();
      return true;
    } catch (const usage_error& e) {
      if (e.code() != errc::budget_too_small) throw;
      ++r_.counts().refused;
      return false;
    }
  }
  std::vector<T> values_for(const std::vector<std::size_t>& at) {
    std::vector<T> values(at.size());
    for (T& v : values) v = any_value();
    return values;
  }
  void gather() {
    const auto at = places();
    std::vector<T> got(at.size());
    if (!within_budget([&] { std::as_const(*a_).gather(at, got); })) return;
    for (std::size_t n = 0; n < at.size(); ++n) check(at[n], got[n]);
  }
  void scatter() {
    const auto at = places();
    const auto values = values_for(at);
    if (!within_budget([&] { a_->scatter(at, values); })) return;
    for (std::size_t n = 0; n < at.size(); ++n) plain_[at[n]] = values[n];
  }
  void accumulate() {
    const auto op = [](const T& element, const T& value) {
      T both = element;
      const auto to = std::as_writable_bytes(std::span(&both, 1));
      const auto from = std::as_bytes(std::span(&value, 1));
      for (std::size_t i = 0; i < sizeof(T); ++i) to[i] ^= from[sizeof(T) - 1 - i];
      return both;
    };
    const auto at = places();
    const auto values = values_for(at);
    if (!within_budget([&] { a_->accumulate(at, values, op); })) return;
    for (std::size_t n = 0; n < at.size(); ++n) plain_[at[n]] = op(plain_[at[n]], values[n]);
  }
  void advise() {
    constexpr std::array all{access_pattern::automatic, access_pattern::sequential, access_pattern::random};
    a_->advise(all[draw(g_, 0, all.size() - 1)]);
  }

  box<N> part_of(const box<N>& b) {
    box<N> p = any_box();
    for (std::size_t k = 0; k < N; ++k) {
      p.lower[k] = std::clamp(p.lower[k], b.lower[k], b.upper[k]);
      p.upper[k] = std::clamp(p.upper[k], b.lower[k], b.upper[k]);
    }
    return p;
  }
  void read_together() {
    const box<N> b = any_box();
    std::vector<T> got(b.size());
    a_->read_all(b, got);
    std::size_t n = 0;
    each_of<N>(b, extents_, [&](const index&, std::size_t at) { check(at, got[n++]); });
  }
  void write_together(const box<N>& b) {
    std::vector<T> values(b.size());
    for (T& v : values) v = any_value();
    if (!pins_.empty()) return refused_while_pinned([&] { a_->write_all(b, values); });
    a_->write_all(b, values);
    r_.counts().acknowledged_bytes += values.size() * sizeof(T);
    std::size_t n = 0;
    each_of<N>(b, extents_, [&](const index&, std::size_t at) { plain_[at] = values[n++]; });
  }

  void pin() {
    const box<N> b = r_.one_in(2) ? any_box() : one_element();
    held_pin p;
    const auto take = [&](const auto& guard) {
      for (const auto& row : guard.rows())
        for (const T& v : row) p.at.push_back(&v);
    };
    try {
      if (r_.one_in(3))
        take(p.reading.emplace(std::as_const(*a_).pin(b)));
      else
        take(p.writing.emplace(a_->pin(b)));
    } catch (const usage_error& e) {
      if (e.code() != errc::budget_too_small) throw;
      ++r_.counts().refused;
      return;
    }
    each_of<N>(b, extents_, [&](const index&, std::size_t at) { p.places.push_back(at); });
    if (p.at.size() != p.places.size())
      throw finding(verdict::failed, "a pin hands out another number of elements than its box has");
    if (b.empty()) return;  // pins nothing
    pins_.push_back(std::move(p));
    write_pinned();
    if (r_.one_in(2)) pins_.pop_back();
  }
  box<N> one_element() {
    const index c = draw_element<N>(g_, extents_);
    box<N> b{c, c};
    for (std::size_t& u : b.upper) ++u;
    return b;
  }
  void write_pinned() {
    if (pins_.empty()) return;
    held_pin& p = pins_[draw(g_, 0, pins_.size() - 1)];
    for (std::size_t n = 0; n < p.at.size(); ++n) {
      check(p.places[n], *p.at[n]);
      if (p.writing) const_cast<T&>(*p.at[n]) = plain_[p.places[n]] = any_value();
    }
  }
  void unpin() {
    if (pins_.empty()) return;
    pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(draw(g_, 0, pins_.size() - 1)));
  }
  template <class F>
  void refused_while_pinned(F&& f) {
    if (r_.one_in(2)) {
      try {
        f();
      } catch (const usage_error& e) {
        if (e.code() != errc::busy && e.code() != errc::dirty) throw;
        return;
      }
      throw finding(verdict::failed, what_ + " was done while a region is pinned");
    }
    pins_.clear();
  }

  void resize() {
    if (options_.max_extents.empty()) return;
    const index extents = testing::some_extents(g_, *a_, options_);
    if (!pins_.empty()) return refused_while_pinned([&] { a_->resize(extents); });
    a_->resize(extents);
    plain_ = testing::resized(plain_, extents_, extents, options_.fill.value_or(T{}));
    extents_ = extents;
    if (a_->extents() != extents_) throw finding(verdict::failed, "resize() left other extents");
  }

  void reopen() {
    pins_.clear();
    close_and_open();
  }
  void close_and_open() {
    a_->close();
    array_options<T> o;
    o.block = options_.block;
    o.shared = r_.one_in(3);
    if (!Layout::contiguous) o.tile = options_.tile;
    try {
      a_.emplace(rt_, store_, name_, open, extents_, o);
    } catch (const usage_error& e) {
      if (e.code() != errc::budget_too_small) throw;
      o.shared = options_.shared;
      a_.emplace(rt_, store_, name_, open, extents_, o);
    }
    options_.shared = o.shared;
    options_.buffers = 0;
  }

  void discard_changes() {
    pins_.clear();
    write_back(durability::acknowledged);
    const std::vector<T> kept = plain_;
    write(any_box());
    a_->invalidate(discard);
    // Every block that left memory meanwhile is in the store.
    each_of<N>(a_->whole(), extents_,
               [&](const index& c, std::size_t at) { adopt(at, std::as_const(*a_).element(c), kept[at]); });
  }

  void two_threads() {
    std::vector<std::thread> all;
    std::atomic<std::size_t> bad{~std::size_t{0}};
    for (std::uint64_t t = 0; t < 2; ++t)
      all.emplace_back([&, t, seed = g_()] {
        std::mt19937_64 own(seed);
        for (int n = 0; n < 200; ++n) {
          const index c = draw_element<N>(own, extents_);
          const std::size_t at = place(c);
          if (at % 2 != t) continue;
          if (draw(own, 0, 1) == 0)
            a_->element(c) = plain_[at] = value_of<T>(draw(own, 0, 5));
          else if (!same(std::as_const(*a_).element(c), plain_[at]))
            bad = at;
        }
      });
    a_->writeback();
    for (std::thread& t : all) t.join();
    if (bad != ~std::size_t{0})
      throw finding(verdict::wrong,
                    "a thread read another value than it wrote to element " + std::to_string(bad) + " of " + name_);
  }

  round& r_;
  std::mt19937_64& g_;
  runtime& rt_;
  store store_;
  std::string name_;
  index extents_{};
  array_options<T> options_;
  std::vector<T> plain_;
  std::optional<array> a_;
  std::vector<held_pin> pins_;  ///< end before the array
  std::uint64_t serial_ = 1000;
  int step_ = 0;
  std::string what_;
};

template <class... A>
std::unique_ptr<one_array> make(A&&... a) {
  const auto made = [&]<class P>(std::type_identity<P>) { return std::make_unique<P>(std::forward<A>(a)...); };
  round& r = std::get<0>(std::tie(a...));
  switch (r.between(0, 6)) {
    case 0: return made(std::type_identity<program<std::uint8_t, 1, layout_right>>{});
    case 1: return made(std::type_identity<program<double, 2, layout_right>>{});
    case 2: return made(std::type_identity<program<record24, 1, layout_right>>{});
    case 3: return made(std::type_identity<program<record24, 3, layout_right>>{});
    case 4: return made(std::type_identity<program<std::int32_t, 2, layout_tiled>>{});
    case 5: return made(std::type_identity<program<std::complex<double>, 3, layout_tiled>>{});
    default: return made(std::type_identity<program<std::uint64_t, 1, layout_right>>{});
  }
}

}  // namespace

namespace {

bool has_userfaultfd() {
  try {
    const runtime any{{.memory = 1_MiB, .mapping = mapping_way::userfaultfd}};
    return true;
  } catch (const usage_error&) {
    return false;
  }
}

}  // namespace

void random_programs(round& r) {
  // With few blocks in memory the steps of a large array take long.
  constexpr std::chrono::seconds long_enough{20};
  std::string url = "local:";
  const std::uint64_t nodes = r.between(1, 3);
  for (std::uint64_t n = 0; n < nodes; ++n)
    url += (n != 0 ? "," : "") + (r.folder() / ("node" + std::to_string(n))).string();
  store_options so;
  so.workers = static_cast<unsigned>(r.between(1, 2));
  so.staging = 64_KiB;
  so.direct_io = r.one_in(2);
  so.io_uring = r.one_in(2);
  const store s = store::open(url, so);

  const std::uint64_t arrays = r.between(1, 3);
  runtime_options ro;
  ro.memory = nodes * so.workers * so.staging + 4096 * r.between(20, 80);
  ro.read_ahead = static_cast<unsigned>(r.between(0, 3));
  ro.grains = !r.one_in(3);
  if (r.one_in(4) && has_userfaultfd()) ro.mapping = mapping_way::userfaultfd;
  for (;; ro.memory += ro.memory / 2) {
    runtime rt{ro};
    try {
      std::vector<std::unique_ptr<one_array>> all;
      for (std::uint64_t n = 0; n < arrays; ++n) all.push_back(make(r, rt, s, "deep/er/array" + std::to_string(n)));
      const int steps = static_cast<int>(r.between(60, 250));
      const auto until = std::chrono::steady_clock::now() + long_enough;
      for (int n = 0; n < steps && std::chrono::steady_clock::now() < until; ++n) all[r.between(0, arrays - 1)]->step();
      for (const auto& a : all) a->finish();
      return;
    } catch (const usage_error& e) {
      // Said when an array is opened or a transfer is too large, before anything was done.
      if (e.code() != errc::budget_too_small || ro.memory > 64_MiB) throw;
      ++r.counts().refused;
    }
  }
}

}  // namespace ooc::attack
