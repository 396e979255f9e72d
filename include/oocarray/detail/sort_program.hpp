// An order of elements as what the engine of ooc::sort() needs: sorting a run, merging windows of runs.
//
//   radix_order     the order of a key that is a number, as unsigned bits: runs are sorted by radix
//   compared_order  the order of a comparison: runs are sorted by std::sort or std::stable_sort
//
// Windows are merged with a tree of losers (Knuth, The Art of Computer Programming 3, 5.4.1): one comparison
// for each level; many short windows, that fit in a cache, by radix.  Of equal elements that of the earlier
// window comes first.
//
// Threads: everything is const and may be called by several at once, if the program's functions may.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "oocarray/detail/sort_engine.hpp"
#include "oocarray/element_type.hpp"

namespace ooc::detail {

template <std::size_t Bytes>
using unsigned_of = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t, std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;

/// Numbers that can be sorted by their bits.
template <class K>
concept radix_key = (std::is_integral_v<K> || std::is_enum_v<K> || is_float<K>)&&sizeof(K) <= 8;

/// As many bits, which compare as the numbers do.  Both zeros are equal, and NaN comes last.
template <radix_key K>
unsigned_of<sizeof(K)> ascending_bits(K x) noexcept {
  using bits = unsigned_of<sizeof(K)>;
  constexpr bits sign = bits{1} << (8 * sizeof(K) - 1);
  if constexpr (is_float<K>) {
    if (x != x) return static_cast<bits>(-1);
    if (x == 0) return sign;
    const auto b = std::bit_cast<bits>(x);
    return (b & sign) != 0 ? static_cast<bits>(~b) : static_cast<bits>(b | sign);
  } else if constexpr (std::is_enum_v<K>) {
    return ascending_bits(static_cast<std::underlying_type_t<K>>(x));
  } else if constexpr (std::is_signed_v<K>) {
    return static_cast<bits>(static_cast<bits>(x) ^ sign);
  } else {
    return static_cast<bits>(x);
  }
}

template <class T, class Key, bool Descending>
struct radix_order {
  using key_type = std::remove_cvref_t<std::invoke_result_t<const Key&, const T&>>;
  using bits_type = unsigned_of<sizeof(key_type)>;
  static constexpr bool by_bits = true;
  [[no_unique_address]] Key key;

  bits_type bits_of_key(const key_type& k) const noexcept {
    const bits_type b = ascending_bits(k);
    if constexpr (!Descending) return b;
    if constexpr (is_float<key_type>)
      if (k != k) return b;  // last in both orders
    return static_cast<bits_type>(~b);
  }
  bits_type bits(const T& x) const { return bits_of_key(std::invoke(key, x)); }
  bool operator()(const T& x, const T& y) const { return bits(x) < bits(y); }
  /// An element comes before a key that is looked for.
  bool before_key(const T& x, const key_type& k) const { return bits(x) < bits_of_key(k); }
  bool key_before_key(const key_type& j, const key_type& k) const { return bits_of_key(j) < bits_of_key(k); }
};

template <class T, class Compare, class Key>
struct compared_order {
  using key_type = std::remove_cvref_t<std::invoke_result_t<const Key&, const T&>>;
  static constexpr bool by_bits = false;
  [[no_unique_address]] Compare compare;
  [[no_unique_address]] Key key;

  bool operator()(const T& x, const T& y) const {
    return static_cast<bool>(std::invoke(compare, std::invoke(key, x), std::invoke(key, y)));
  }
  bool before_key(const T& x, const key_type& k) const {
    return static_cast<bool>(std::invoke(compare, std::invoke(key, x), k));
  }
  bool key_before_key(const key_type& j, const key_type& k) const {
    return static_cast<bool>(std::invoke(compare, j, k));
  }
};

template <class T>
struct cursor {
  const T* at;
  const T* end;
};

/// Sorting by eight bits at a time (Knuth 5.2.5), stable: from the highest on as long as what is to be sorted is
/// larger than a cache, and then from the lowest on.  Only as many of the highest bits that differ at all are
/// looked at as numbers in random order need to be nearly sorted; insertion does the rest, and where that would
/// take long, all bits are looked at.
template <class T, class Order>
class radix_sorter {
  using bits_type = typename Order::bits_type;

 public:
  explicit radix_sorter(const Order& order) noexcept : order_(order) {}

  /// True: the result is in `other`.
  bool sort(T* elements, std::size_t count, T* other) const {
    if (std::is_sorted(elements, elements + count, std::cref(order_))) return false;
    sort_into(elements, other, count, true);
    return true;
  }
  /// `to_other`: where the result is to be.
  void sort_into(T* at, T* other, std::size_t count, bool to_other) const {
    if (count <= few) {
      insert(at, count, count * count);
      if (to_other) std::copy(at, at + count, other);
      return;
    }
    const bits_type any = order_.bits(*at);
    bits_type different = 0;
    for (std::size_t i = 0; i < count; ++i) different = static_cast<bits_type>(different | (order_.bits(at[i]) ^ any));
    const auto width = static_cast<unsigned>(std::bit_width(different));
    if (count <= cached) return from_lowest(at, other, count, width, to_other);
    const unsigned shift = width > 8 ? width - 8 : 0;
    table counts{}, place{};
    for (std::size_t i = 0; i < count; ++i) ++counts[digit(at[i], shift)];
    std::size_t sum = 0;
    for (std::size_t k = 0; k < 256; ++k) {
      place[k] = sum;
      sum += counts[k];
    }
    for (std::size_t i = 0; i < count; ++i) other[place[digit(at[i], shift)]++] = at[i];
    if (shift != 0) {
      for (std::size_t k = 0; k < 256; ++k)
        if (counts[k] != 0) sort_into(other + place[k] - counts[k], at + place[k] - counts[k], counts[k], !to_other);
    } else if (!to_other) {
      std::copy(other, other + count, at);
    }
  }

  static constexpr std::size_t cached = (384 << 10) / sizeof(T);

  /// Merges sorted windows that fit in a cache: by so many of the bits in which they differ that few elements share
  /// them, and insertion.  False: too many do, and `to` is not sorted.
  bool merge(const std::vector<cursor<T>>& from, std::size_t count, T* to) const {
    bits_type least = order_.bits(*from.front().at), most = least;
    for (const cursor<T>& c : from) {
      least = std::min(least, order_.bits(*c.at));
      most = std::max(most, order_.bits(c.end[-1]));
    }
    const auto range = static_cast<bits_type>(most - least);
    const auto width = static_cast<unsigned>(std::bit_width(range));
    const unsigned shift = width - std::min(width, static_cast<unsigned>(std::bit_width(count)) + 1);
    const auto place_of = [&](const T& x) {
      return static_cast<std::size_t>(static_cast<bits_type>(order_.bits(x) - least) >> shift);
    };
    std::vector<std::uint32_t> place(static_cast<std::size_t>(range >> shift) + 1);
    for (const cursor<T>& c : from)
      for (const T* x = c.at; x != c.end; ++x) ++place[place_of(*x)];
    std::uint32_t sum = 0;
    for (std::uint32_t& p : place) sum += std::exchange(p, sum);
    for (const cursor<T>& c : from)
      for (const T* x = c.at; x != c.end; ++x) to[place[place_of(*x)]++] = *x;
    return shift == 0 || insert(to, count, 8 * count);
  }

 private:
  using table = std::array<std::size_t, 256>;
  static constexpr std::size_t few = 48;

  std::size_t digit(const T& x, unsigned shift) const {
    return static_cast<std::size_t>(order_.bits(x) >> shift) & 255;
  }

  void from_lowest(T* at, T* other, std::size_t count, unsigned width, bool to_other) const {
    const unsigned all = (width + 7) / 8;
    const unsigned enough = (static_cast<unsigned>(std::bit_width(count)) + 7) / 8;
    bool moved = false;
    if (enough < all) {
      moved = by_digits(at, other, count, width - 8 * enough, enough);
      T* const now = moved ? other : at;
      if (!insert(now, count, 8 * count)) moved ^= by_digits(now, moved ? at : other, count, 0, all);
    } else {
      moved = by_digits(at, other, count, 0, all);
    }
    if (moved != to_other) {
      T* const now = moved ? other : at;
      std::copy(now, now + count, moved ? at : other);
    }
  }

  /// By so many digits from bit `shift` on.  True: the result is in `other`.
  bool by_digits(T* at, T* other, std::size_t count, unsigned shift, unsigned digits) const {
    std::array<table, sizeof(bits_type)> counts{};
    for (std::size_t i = 0; i < count; ++i) {
      const auto b = static_cast<bits_type>(order_.bits(at[i]) >> shift);
      for (unsigned d = 0; d < digits; ++d) ++counts[d][static_cast<std::size_t>(b >> (8 * d)) & 255];
    }
    bool moved = false;
    for (unsigned d = 0; d < digits; ++d) {
      table& place = counts[d];
      const unsigned from = shift + 8 * d;
      if (place[digit(*at, from)] == count) continue;  // all alike
      std::size_t sum = 0;
      for (std::size_t& p : place) sum += std::exchange(p, sum);
      for (std::size_t i = 0; i < count; ++i) other[place[digit(at[i], from)]++] = at[i];
      std::swap(at, other);
      moved = !moved;
    }
    return moved;
  }

  /// False: given up after so many moves.
  bool insert(T* at, std::size_t count, std::size_t moves) const {
    bits_type last = order_.bits(*at);
    for (std::size_t i = 1; i < count; ++i) {
      const bits_type b = order_.bits(at[i]);
      if (!(b < last)) {
        last = b;
        continue;
      }
      const T x = at[i];
      std::size_t j = i;
      do {
        at[j] = at[j - 1];
        --j;
        if (moves-- == 0) {
          at[j] = x;  // where it lands is as good as any: equal ones have not been passed
          return false;
        }
      } while (j > 0 && b < order_.bits(at[j - 1]));
      at[j] = x;
    }
    return true;
  }

  const Order& order_;
};

/// A tree of windows, its leaves: the loser at each node, and the winner of all.
template <class Player, class Beats>
class loser_tree {
 public:
  loser_tree(std::vector<Player> leaves, Beats beats) : beats_(beats), leaves_(leaves.size()), losers_(leaves) {
    winner_ = play(1, leaves);
  }
  Player& winner() noexcept { return winner_; }
  /// The winner, of window `leaf`, has changed.
  void replay(std::size_t leaf) {
    for (std::size_t n = (leaf + leaves_) / 2; n > 0; n /= 2) {
      const bool lost = beats_(losers_[n], winner_);
      const Player w = winner_, l = losers_[n];
      winner_ = lost ? l : w;
      losers_[n] = lost ? w : l;
    }
  }

 private:
  Player play(std::size_t n, const std::vector<Player>& leaves) {
    if (n >= leaves_) return leaves[n - leaves_];
    Player a = play(2 * n, leaves), b = play(2 * n + 1, leaves);
    if (beats_(b, a)) std::swap(a, b);
    losers_[n] = b;
    return a;
  }

  [[no_unique_address]] Beats beats_;
  std::size_t leaves_;
  std::vector<Player> losers_;
  Player winner_;
};

template <class T, class Order>
void merge_two(cursor<T> a, cursor<T> b, T* to, const Order& order) {
  while (a.at != a.end && b.at != b.end) {
    const bool second = order(*b.at, *a.at);
    *to++ = second ? *b.at : *a.at;
    b.at += second;
    a.at += !second;
  }
  to = std::copy(a.at, a.end, to);
  std::copy(b.at, b.end, to);
}

__extension__ typedef unsigned __int128 wide_number;  // which ISO C++ does not have, as -Wpedantic says

/// By bits: the player is key and window in one number, and no branch depends on who wins.
template <class T, class Order>
void merge_by_bits(std::vector<cursor<T>> from, std::size_t count, T* to, const Order& order) {
  using bits_type = typename Order::bits_type;
  using player = std::conditional_t<sizeof(bits_type) <= 4, std::uint64_t, wide_number>;
  constexpr std::uint32_t ended = std::uint32_t{1} << 31;  // comes after all that have not
  const auto of = [](bits_type b, std::uint32_t window) { return static_cast<player>(b) << 32 | window; };
  std::vector<player> leaves;
  for (std::uint32_t w = 0; w < from.size(); ++w) leaves.push_back(of(order.bits(*from[w].at), w));
  const auto beats = [](player x, player y) { return x < y; };
  loser_tree<player, decltype(beats)> tree(std::move(leaves), beats);
  for (std::size_t i = 0; i < count; ++i) {
    const auto w = static_cast<std::uint32_t>(tree.winner());
    cursor<T>& c = from[w];
    *to++ = *c.at++;
    tree.winner() = c.at != c.end ? of(order.bits(*c.at), w) : of(static_cast<bits_type>(-1), w | ended);
    tree.replay(w);
  }
}

template <class T, class Order>
void merge_by_comparison(std::vector<cursor<T>> from, std::size_t count, T* to, const Order& order) {
  const auto beats = [&](std::uint32_t x, std::uint32_t y) {
    if (from[x].at == from[x].end) return false;
    if (from[y].at == from[y].end) return true;
    return x < y ? !order(*from[y].at, *from[x].at) : order(*from[x].at, *from[y].at);
  };
  std::vector<std::uint32_t> leaves;
  for (std::uint32_t w = 0; w < from.size(); ++w) leaves.push_back(w);
  loser_tree<std::uint32_t, decltype(beats)> tree(std::move(leaves), beats);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t w = tree.winner();
    *to++ = *from[w].at++;
    tree.replay(w);
  }
}

template <class T, class Order>
class ordered_program final : public sort_program {
 public:
  /// Beyond this, records are moved too often by radix.
  static constexpr bool by_radix = Order::by_bits && sizeof(T) <= 32;

  ordered_program(Order order, bool stable) : order_(std::move(order)), stable_(stable) {}

  std::size_t element_size() const noexcept override { return sizeof(T); }
  bool needs_scratch() const noexcept override { return by_radix; }
  bool allocates() const noexcept override { return !by_radix && stable_; }

  bool sort_run(std::byte* elements, std::size_t count, std::byte* scratch) const override {
    T* const first = typed(elements);
    if constexpr (by_radix) {
      return radix_sorter<T, Order>(order_).sort(first, count, typed(scratch));
    } else {
      if (stable_)
        std::stable_sort(first, first + count, std::cref(order_));
      else
        std::sort(first, first + count, std::cref(order_));
      return false;
    }
  }

  bool less(const std::byte* x, const std::byte* y) const override { return order_(*typed(x), *typed(y)); }

  std::size_t least_last(std::span<const sorted_window> w) const override {
    std::size_t least = w.size();
    for (std::size_t k = 0; k < w.size(); ++k)
      if (w[k].more && (least == w.size() || order_(last(w[k]), last(w[least])))) least = k;
    return least;
  }

  void before(std::span<const sorted_window> w, std::size_t of, std::size_t x, std::size_t* counts) const override {
    const T& e = typed(w[of].first)[x];
    for (std::size_t k = 0; k < w.size(); ++k) {
      const T* const first = typed(w[k].first);
      const T* const end = first + w[k].count;
      const T* const cut = k < of   ? std::upper_bound(first, end, e, std::cref(order_))
                           : k > of ? std::lower_bound(first, end, e, std::cref(order_))
                                    : first + x;
      counts[k] = static_cast<std::size_t>(cut - first);
    }
  }

  void merge(std::span<const sorted_window> w, std::byte* to) const override {
    std::vector<cursor<T>> from;
    std::size_t count = 0;
    for (const sorted_window& one : w) {
      if (one.count == 0) continue;
      from.push_back({typed(one.first), typed(one.first) + one.count});
      count += one.count;
    }
    if (from.empty()) return;
    if (from.size() == 1)
      std::memcpy(to, from[0].at, count * sizeof(T));
    else if (from.size() == 2)
      merge_two(from[0], from[1], typed(to), order_);
    else if constexpr (by_radix)
      from.size() > 4 && count <= radix_sorter<T, Order>::cached
          ? merge_in_cache(std::move(from), count, typed(to))
          : merge_by_bits(std::move(from), count, typed(to), order_);
    else if constexpr (Order::by_bits)
      merge_by_bits(std::move(from), count, typed(to), order_);
    else
      merge_by_comparison(std::move(from), count, typed(to), order_);
  }

  std::size_t sorted_until(const std::byte* elements, std::size_t count) const override {
    const T* const first = typed(elements);
    return static_cast<std::size_t>(std::is_sorted_until(first, first + count, std::cref(order_)) - first);
  }

 private:
  /// In a cache, radix sorting is faster than a tree of many windows.
  void merge_in_cache(std::vector<cursor<T>> from, std::size_t count, T* to) const {
    if (!radix_sorter<T, Order>(order_).merge(from, count, to)) merge_by_bits(std::move(from), count, to, order_);
  }
  static T* typed(std::byte* p) noexcept { return reinterpret_cast<T*>(p); }
  static const T* typed(const std::byte* p) noexcept { return reinterpret_cast<const T*>(p); }
  static const T& last(const sorted_window& w) noexcept { return typed(w.first)[w.count - 1]; }

  Order order_;
  bool stable_;
};

template <class T, class Order>
class ordered_search final : public search_program {
 public:
  using key_type = typename Order::key_type;

  ordered_search(Order order, std::span<const key_type> keys) : order_(std::move(order)), keys_(keys) {
    by_key_.resize(keys.size());
    for (std::size_t k = 0; k < keys.size(); ++k) by_key_[k] = k;
    std::sort(by_key_.begin(), by_key_.end(),
              [&](std::size_t j, std::size_t k) { return order_.key_before_key(keys_[j], keys_[k]); });
    places_.resize(keys.size());
  }
  std::vector<std::size_t> take_places() { return std::move(places_); }

  std::size_t element_size() const noexcept override { return sizeof(T); }
  std::size_t keys() const noexcept override { return keys_.size(); }
  std::size_t keys_after(std::size_t first, std::size_t last, const std::byte* element) const override {
    const T& x = *reinterpret_cast<const T*>(element);
    const auto begin = by_key_.begin();
    const auto at =
        std::partition_point(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last),
                             [&](std::size_t k) { return !order_.before_key(x, keys_[k]); });
    return static_cast<std::size_t>(at - begin);
  }
  void place(std::size_t k, const std::byte* elements, std::size_t count, std::uint64_t base) override {
    const T* const first = reinterpret_cast<const T*>(elements);
    const key_type& key = keys_[by_key_[k]];
    const T* const at =
        std::partition_point(first, first + count, [&](const T& x) { return order_.before_key(x, key); });
    places_[by_key_[k]] = base + static_cast<std::size_t>(at - first);
  }

 private:
  Order order_;
  std::span<const key_type> keys_;
  std::vector<std::size_t> by_key_;  ///< their numbers, in ascending order of the keys
  std::vector<std::size_t> places_;
};

/// A comparison or key that is not given.
struct as_it_is {
  template <class T>
  const T& operator()(const T& x) const noexcept {
    return x;
  }
};
/// With NaN last in both orders.
template <std::floating_point T, bool Descending>
struct order_of_numbers {
  bool operator()(const T& x, const T& y) const noexcept { return (Descending ? x > y : x < y) || (y != y && x == x); }
};

/// The order of `compare` on `key`: by bits where the comparison is that of numbers.
template <class T, class Compare, class Key>
auto order_of(Compare compare, Key key) {
  using key_type = std::remove_cvref_t<std::invoke_result_t<const Key&, const T&>>;
  constexpr bool less = std::is_same_v<Compare, std::less<>> || std::is_same_v<Compare, std::less<key_type>>;
  constexpr bool greater = std::is_same_v<Compare, std::greater<>> || std::is_same_v<Compare, std::greater<key_type>>;
  if constexpr (radix_key<key_type> && (less || greater))
    return radix_order<T, Key, greater>{std::move(key)};
  else if constexpr (std::is_floating_point_v<key_type> && (less || greater))  // long double
    return compared_order<T, order_of_numbers<key_type, greater>, Key>{{}, std::move(key)};
  else
    return compared_order<T, Compare, Key>{std::move(compare), std::move(key)};
}

}  // namespace ooc::detail
