// Random operations on an array, of a store or in a file that belongs to none, each repeated on a plain vector.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include "oocarray/open_file.hpp"
#include "support/random_boxes.hpp"
#include "support/random_source.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_arrays.hpp"

namespace ooc::testing {

template <class Array, class Index>
decltype(auto) chained(Array& a, const Index& c) {
  if constexpr (std::tuple_size_v<Index> == 1)
    return (a[c[0]]);
  else if constexpr (std::tuple_size_v<Index> == 2)
    return (a[c[0]][c[1]]);
  else if constexpr (std::tuple_size_v<Index> == 3)
    return (a[c[0]][c[1]][c[2]]);
  else
    return (a[c[0]][c[1]][c[2]][c[3]]);
}

/// A file with bytes before and behind its elements, which must stay as they are.
template <class T>
class model_file {
 public:
  model_file(std::mt19937_64& g, std::size_t elements) {
    static constexpr std::size_t places[] = {0, 8, 128, 4096 + 8, 4096, 5000};
    offset_ = places[between(g, 0, 5)] / alignof(T) * alignof(T);
    around_.assign(offset_ + between(g, 0, 9), 'x');
    write(std::vector<T>(elements));
  }
  std::string path() const { return (folder_ / "array.raw").string(); }
  std::size_t offset() const { return offset_; }
  /// True if the file holds these elements, and nothing else has changed.
  bool holds(const std::vector<T>& elements) const {
    std::ifstream in(path(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {}) == with(elements);
  }

 private:
  std::string with(const std::vector<T>& elements) const {
    std::string s = around_;
    return s.insert(offset_, reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
  }
  void write(const std::vector<T>& elements) const { std::ofstream(path(), std::ios::binary) << with(elements); }

  temporary_folder folder_;
  std::size_t offset_ = 0;
  std::string around_;
};

enum class model_kind {
  small_blocks,
  in_place,   ///< a file of no store
  in_grains,  ///< blocks that may come in parts
};

template <class T, std::size_t N, class Layout>
class array_model {
 public:
  using array = ooc_array<T, N, Layout>;
  using coordinates = ooc::coordinates<N>;

  array_model(std::mt19937_64& g, store_kind kind, model_kind what = model_kind::small_blocks)
      : g_(g), nodes_(kind), what_(what) {
    const bool in_place = what == model_kind::in_place, in_grains = what == model_kind::in_grains;
    std::size_t left = 30000 / sizeof(T) * (in_grains ? 48 : 4);
    for (std::size_t k = 0; k < N; ++k) {
      const std::size_t most = N == 1 ? left : k + 1 == N ? std::min<std::size_t>(left, 300) : in_grains ? 200 : 24;
      extents_[k] = between(g_, 1, std::max<std::size_t>(1, std::min(left, most)));
      left = std::max<std::size_t>(1, left / extents_[k]);
    }
    std::shuffle(extents_.begin(), extents_.end(), g_);
    options_.block = some_block();
    if (in_grains && between(g_, 0, 1)) options_.pattern = access_pattern::random;
    if (between(g_, 0, 1)) options_.order = file_order::tiled;
    if (between(g_, 0, 1)) {
      // A tile of a few KiB, some sides longer than the array.
      std::size_t room = std::bit_floor(12288 / sizeof(T));
      for (std::size_t k = 0; k < N; ++k) {
        const std::size_t t =
            std::min<std::size_t>(room, std::size_t{1} << between(g_, 0, std::bit_width(extents_[k])));
        options_.tile.push_back(t);
        room /= t;
      }
      // Each block is a page at least: blocks of a few elements would only make the test slow.
      for (std::size_t used = std::bit_floor(12288 / sizeof(T)) / room * sizeof(T); used < 1024; used *= 2)
        options_.tile.back() *= 2;
    }
    if (between(g_, 0, 1)) options_.fill = value_of<T>(99);
    if (between(g_, 0, 1)) options_.sparse = true;
    if (between(g_, 0, 1)) options_.stripes.sf = 4096 * between(g_, 1, 4);
    if (between(g_, 0, 1)) options_.max_extents = some_limits<Layout>(g_, extents_, options_);
    if (in_place) {
      options_.order = file_order::row_major;
      options_.fill.reset();
      options_.max_extents.clear();
    }
    options_ = tile_if_used<Layout>(options_);
    plain_.assign(count(), fill());
    // Blocks have at most 3 pages, or those of a tile.
    const std::uint64_t least = 5 * (in_grains ? 128_KiB : 16_KiB);
    rt_.emplace(memory(nodes_.staging() + least + 4096 * between(g_, 0, 20), static_cast<unsigned>(between(g_, 0, 3))));
    if (in_place) {
      file_.emplace(g_, plain_.size());
      open_in_place(false, options_);
    } else {
      a_.emplace(*rt_, nodes_.handle(), "deep/er/array", create, extents_, options_);
    }
  }

  std::string describe() const { return testing::describe(extents_, options_, rt_->memory()); }

  void run(int operations) {
    for (int n = 0; n < operations; ++n) {
      step_ = n;
      one();
    }
    reopen(true);
    compare(a_->whole());
    if (file_) REQUIRE(file_->holds(plain_));
  }

  /// Several threads, each with its own indices of the first dimension, and one that flushes.
  void run_threads(unsigned threads, int operations) {
    std::vector<std::thread> all;
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&, t, seed = g_()] {
        std::mt19937_64 own(seed);
        for (int n = 0; n < operations; ++n) {
          coordinates c;
          for (std::size_t k = 0; k < N; ++k) c[k] = between(own, 0, extents_[k] - 1);
          if (c[0] % threads != t) continue;
          const std::size_t at = linear(c);
          if (between(own, 0, 7) == 0) {
            wrong += !by_index(own, [&](const coordinates& i) { return i[0] % threads == t; });
          } else if (between(own, 0, 1)) {
            chained(*a_, c) = plain_[at] = value_of<T>(own());
          } else if (!(std::as_const(*a_).element(c) == plain_[at])) {
            ++wrong;
          }
        }
      });
    std::thread flusher([&] {
      while (!stop) {
        a_->writeback();
        a_->prefetch(a_->whole());
        std::this_thread::yield();
      }
    });
    for (std::thread& t : all) t.join();
    stop = true;
    flusher.join();
    CHECK(wrong == 0);
    compare(a_->whole());
    reopen(true);
    compare(a_->whole());
  }

 private:
  T fill() const { return options_.fill.value_or(T{}); }
  std::size_t count() const {
    std::size_t n = 1;
    for (std::size_t e : extents_) n *= e;
    return n;
  }
  std::size_t linear(const coordinates& c) const { return linear_index<N>(c, extents_); }
  coordinates random_index() {
    coordinates c;
    for (std::size_t k = 0; k < N; ++k) c[k] = between(g_, 0, extents_[k] - 1);
    return c;
  }
  box<N> random_box() { return testing::random_box<N>(g_, extents_); }
  template <class F>
  void for_each(const box<N>& b, F&& f) const {
    for_each_element<N>(b, extents_, std::forward<F>(f));
  }
  void compare(const box<N>& b) const {
    const array& a = *a_;
    std::size_t wrong = 0;
    for_each(b, [&](const coordinates& c, std::size_t at) { wrong += !(chained(a, c) == plain_[at]); });
    INFO("step " << step_ << ", " << wrong << " elements differ in a box of " << b.size());
    REQUIRE(wrong == 0);
  }
  void write(const box<N>& b) {
    for_each(b, [&](const coordinates& c, std::size_t at) { chained(*a_, c) = plain_[at] = value_of<T>(++serial_); });
  }

  void one() {
    if (!a_->writable()) reopen(false);
    INFO("step " << step_);
    switch (between(g_, 0, 19)) {
      case 0:
      case 1:
        for (int n = 0; n < 20; ++n) {
          const coordinates c = random_index();
          a_->element(c) = plain_[linear(c)] = value_of<T>(++serial_);
        }
        return;
      case 2:
        for (int n = 0; n < 20; ++n) {
          const coordinates c = random_index();
          REQUIRE(std::as_const(*a_).element(c) == plain_[linear(c)]);
        }
        return;
      case 3: return write(random_box());
      case 4: return compare(random_box());
      case 5:
      case 6: return overwrite();
      case 7: return a_->writeback(between(g_, 0, 3) ? durability::acknowledged : durable);
      case 8: a_->writeback(); return a_->invalidate();
      case 9: return a_->prefetch(random_box());
      case 10: return pin();
      case 11: return resize();
      case 12: return reopen(between(g_, 0, 2) == 0);
      case 13: {
        const array& a = *a_;
        REQUIRE(std::equal(a.begin(), a.end(), plain_.begin(), plain_.end()));
        return;
      }
      case 14: {
        std::size_t seen = 0;
        for (const auto& t : a_->tiles(access_mode::write)) {
          seen += t.size();
          const coordinates c = t.lower();
          *t.data() = plain_[linear(c)] = value_of<T>(++serial_);
        }
        REQUIRE(seen == plain_.size());
        return;
      }
      case 15: {
        std::transform(a_->begin(), a_->end(), a_->begin(), [&](const T&) { return value_of<T>(++serial_); });
        serial_ -= plain_.size();
        for (T& v : plain_) v = value_of<T>(++serial_);
        return;
      }
      case 16: return discard_changes();
      case 17:
      case 18:
      case 19: REQUIRE(by_index(g_, [](const coordinates&) { return true; })); return;
    }
  }

  /// A gather, scatter or accumulate of random elements that `mine` allows; false where what was
  /// gathered is not what it should be.
  template <class Mine>
  bool by_index(std::mt19937_64& g, Mine&& mine) {
    std::vector<coordinates> where;
    std::vector<std::size_t> flat;
    const std::size_t most = between(g, 0, 3) ? 40 : 1500;  // sparse, or most of all blocks
    for (std::size_t n = between(g, 0, most); n > 0; --n) {
      coordinates c;
      for (std::size_t k = 0; k < N; ++k) c[k] = between(g, 0, extents_[k] - 1);
      if (!mine(c)) continue;
      where.push_back(c);
      flat.push_back(linear(c));
    }
    std::vector<T> values;
    for (std::size_t n = 0; n < flat.size(); ++n) values.push_back(value_of<T>(g()));
    const bool by_number = between(g, 0, 1) == 0;
    switch (between(g, 0, 2)) {
      case 0:
        by_number ? a_->gather(flat, values) : a_->gather(where, values);
        for (std::size_t n = 0; n < flat.size(); ++n)
          if (!(values[n] == plain_[flat[n]])) return false;
        return true;
      case 1:
        by_number ? a_->scatter(flat, values) : a_->scatter(where, values);
        for (std::size_t n = 0; n < flat.size(); ++n) plain_[flat[n]] = values[n];
        return true;
      default: {
        const auto op = [](const T& was, const T& value) { return mixed(was, value); };
        if (by_number)
          a_->accumulate(flat, values, op);
        else
          a_->accumulate(where, values, op);
        for (std::size_t n = 0; n < flat.size(); ++n) plain_[flat[n]] = op(plain_[flat[n]], values[n]);
        return true;
      }
    }
  }
  /// Depends on both, and on the order of several.
  static T mixed(const T& was, const T& value) {
    std::uint64_t sum = 14695981039346656037u;
    for (const T* v : {&was, &value}) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(v);
      for (std::size_t i = 0; i < sizeof(T); ++i) sum = (sum ^ bytes[i]) * 1099511628211u;
    }
    return value_of<T>(sum >> 20);
  }

  void overwrite() {
    const box<N> b = random_box();
    a_->overwrite(b);
    // Reads outside the box are allowed before; then every element of the box, in either order.
    for (int n = 0; n < 5; ++n) {
      const coordinates c = random_index();
      if (!b.contains(c)) REQUIRE(std::as_const(*a_).element(c) == plain_[linear(c)]);
      if (!b.contains(c)) a_->element(c) = plain_[linear(c)] = value_of<T>(++serial_);
    }
    if (b.empty()) return;
    if (between(g_, 0, 1)) return write(b);
    std::vector<coordinates> order;
    const box<N> together = write_together_within(b);
    for_each(b, [&](const coordinates& c, std::size_t) {
      if (!together.contains(c)) order.push_back(c);
    });
    std::shuffle(order.begin(), order.end(), g_);
    for (const coordinates& c : order) a_->element(c) = plain_[linear(c)] = value_of<T>(++serial_);
  }

  /// Writes a part of the box by write_all(), maybe an empty one, and returns it.
  box<N> write_together_within(const box<N>& b) {
    box<N> part = random_box();
    for (std::size_t k = 0; k < N; ++k) {
      part.lower[k] = std::clamp(part.lower[k], b.lower[k], b.upper[k]);
      part.upper[k] = std::clamp(part.upper[k], b.lower[k], b.upper[k]);
    }
    std::vector<T> values;
    for_each(part, [&](const coordinates&, std::size_t at) { values.push_back(plain_[at] = value_of<T>(++serial_)); });
    a_->write_all(part, values);
    return part;
  }

  void pin() {
    const box<N> b = random_box();
    try {
      if (between(g_, 0, 1)) {
        const auto p = std::as_const(*a_).pin(b);
        std::vector<T> got, expected;
        for (const auto& row : p.rows()) got.insert(got.end(), row.begin(), row.end());
        for_each(b, [&](const coordinates&, std::size_t at) { expected.push_back(plain_[at]); });
        REQUIRE(got == expected);
      } else {
        auto p = a_->pin(b);
        std::uint64_t n = serial_;
        for (const auto& row : p.rows())
          for (T& v : row) v = value_of<T>(++n);
        if (between(g_, 0, 1)) a_->writeback();
        for_each(b, [&](const coordinates&, std::size_t at) { plain_[at] = value_of<T>(++serial_); });
      }
    } catch (const usage_error& e) {
      REQUIRE(e.code() == errc::budget_too_small);
    }
  }

  void resize() {
    if (file_) return;
    const coordinates extents = some_extents(g_, *a_, options_);
    if (std::equal(extents.begin() + 1, extents.end(), extents_.begin() + 1))
      a_->resize(extents[0]);
    else
      a_->resize(extents);
    plain_ = resized(plain_, extents_, extents, fill());
    extents_ = extents;
    REQUIRE(a_->extents() == extents_);
  }

  void discard_changes() {
    a_->writeback();
    const std::vector<T> kept = plain_;
    write(random_box());
    a_->invalidate(discard);
    // What was evicted meanwhile is in the store: every byte is the old or the new one (an element
    // may straddle two blocks).
    const array& a = *a_;
    std::size_t n = 0, wrong = 0;
    const auto bytes = [](const T& v) { return std::as_bytes(std::span(&v, 1)); };
    for (const T& v : a) {
      for (std::size_t i = 0; i < sizeof(T); ++i)
        wrong += bytes(v)[i] != bytes(kept[n])[i] && bytes(v)[i] != bytes(plain_[n])[i];
      plain_[n++] = v;
    }
    REQUIRE(wrong == 0);
  }

  std::uint64_t some_block() {
    return what_ == model_kind::in_grains ? 64_KiB * between(g_, 1, 2) : 4_KiB * between(g_, 1, 3);
  }

  void reopen(bool read_only) {
    a_->close();
    array_options<T> o;
    o.block = some_block();
    o.pattern = options_.pattern;
    if (file_) {
      o.tile = options_.tile;
      o.shared = !read_only && between(g_, 0, 3) == 0;
      return open_in_place(read_only, o);
    }
    // Blocks stay small: a tiled file gives its own tile, anything else the block.
    if (read_only)
      a_.emplace(*rt_, nodes_.handle(), "deep/er/array", open_read_only, o);
    else
      a_.emplace(*rt_, nodes_.handle(), "deep/er/array", open, extents_, o);
    REQUIRE(a_->extents() == extents_);
  }

  void open_in_place(bool read_only, const array_options<T>& o) {
    const file_contents c{.extents = {extents_.begin(), extents_.end()}, .offset = file_->offset()};
    a_.reset();
    if (read_only)
      a_.emplace(open_file<T, N, Layout>(*rt_, file_->path(), open_read_only, c, o));
    else
      a_.emplace(open_file<T, N, Layout>(*rt_, file_->path(), open, c, o));
  }

  std::mt19937_64& g_;
  test_store nodes_;
  const model_kind what_;
  std::optional<model_file<T>> file_;
  std::optional<runtime> rt_;
  coordinates extents_{};
  array_options<T> options_;
  std::vector<T> plain_;
  std::optional<array> a_;
  std::uint64_t serial_ = 1000;
  int step_ = 0;
};

}  // namespace ooc::testing
