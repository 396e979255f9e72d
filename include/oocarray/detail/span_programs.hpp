// The programs that elementwise algorithms run on spans; see algorithm/elementwise.hpp and span_engine.hpp.
//
// Loops are over plain pointers and contiguous, so that they vectorise where the program's function
// does.  Compilers are not told that iterations are independent: what the function writes elsewhere need not be.
// They vectorise loops over one pointer, and over several where these turn out to lead to different places.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "oocarray/detail/held_value.hpp"
#include "oocarray/detail/span_engine.hpp"

namespace ooc::detail {

/// The indices of an element, or with N = 0 none.
template <std::size_t N>
using indices_of_element = std::array<std::size_t, N>;

/// A copy, whose address nobody else has: a loop need not read it again.
template <std::size_t N>
indices_of_element<N> indices_at([[maybe_unused]] const std::size_t* at) noexcept {
  indices_of_element<N> all{};
  if constexpr (N != 0) std::copy_n(at, N, all.begin());
  return all;
}

/// f(x, y, ...), and after these the indices of the element `i` places after `at` in its row.
template <std::size_t N, class F, class... X>
decltype(auto) call_at(F& f, [[maybe_unused]] const indices_of_element<N>& at, [[maybe_unused]] std::size_t i,
                       X&... x) {
  if constexpr (N == 0)
    return f(x...);
  else
    return [&]<std::size_t... D>(std::index_sequence<D...>)->decltype(auto) {
      return f(x..., std::size_t{at[D]}..., at[N - 1] + i);
    }
  (std::make_index_sequence<N - 1>{});
}

/// f(x, y, ...) of each element; T is const where the array is only read.  N: indices that f is given, or 0.
template <std::size_t N, class F, class... T>
class for_each_program final : public span_program {
 public:
  explicit for_each_program(F& f) noexcept : f_(f) {}
  void run(std::size_t, unsigned, std::byte* const* p, std::size_t count, const std::size_t* at) override {
    run(p, count, indices_at<N>(at), std::index_sequence_for<T...>{});
  }

 private:
  template <std::size_t... K>
  void run(std::byte* const* p, std::size_t count, const indices_of_element<N>& at, std::index_sequence<K...>) {
    const std::tuple<T*...> x{reinterpret_cast<T*>(p[K])...};
    for (std::size_t i = 0; i < count; ++i) call_at<N>(f_, at, i, std::get<K>(x)[i]...);
  }

  F& f_;
};

/// The last array becomes f(x, y, ...) of the others, of which there may be none.  N as above.
template <std::size_t N, class F, class Out, class... T>
class transform_program final : public span_program {
 public:
  explicit transform_program(F& f) noexcept : f_(f) {}
  void run(std::size_t, unsigned, std::byte* const* p, std::size_t count, const std::size_t* at) override {
    run(p, count, indices_at<N>(at), std::index_sequence_for<T...>{});
  }

 private:
  template <std::size_t... K>
  void run(std::byte* const* p, std::size_t count, const indices_of_element<N>& at, std::index_sequence<K...> all) {
    const std::tuple<const T*...> x{reinterpret_cast<const T*>(p[K])...};
    Out* const out = reinterpret_cast<Out*>(p[sizeof...(T)]);
    if (!(run_in_place<K>(x, out, count, at, all) || ...)) run_from<sizeof...(T)>(x, out, count, at, all);
  }
  /// False where the output is not input number `Same`.
  template <std::size_t Same, std::size_t... K>
  bool run_in_place(const std::tuple<const T*...>& x, Out* out, std::size_t count, const indices_of_element<N>& at,
                    std::index_sequence<K...> all) {
    if constexpr (std::is_same_v<std::tuple_element_t<Same, std::tuple<T...>>, Out>)
      if (std::get<Same>(x) == out) return run_from<Same>(x, out, count, at, all), true;
    return false;
  }
  /// Input number `Same` is read through the pointer to the output.
  template <std::size_t Same, std::size_t... K>
  void run_from([[maybe_unused]] const std::tuple<const T*...>& x, Out* out, std::size_t count,
                const indices_of_element<N>& at, std::index_sequence<K...>) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<Out>(call_at<N>(f_, at, i, input<K == Same, K>(x, out)[i]...));
  }
  template <bool IsOutput, std::size_t K>
  static const auto* input([[maybe_unused]] const std::tuple<const T*...>& x, [[maybe_unused]] const Out* out) {
    if constexpr (IsOutput)
      return out;
    else
      return std::get<K>(x);
  }

  F& f_;
};

/// at(0) op at(1) op ... of `count` > 0 values, in eight lanes that are put together at the end:
/// the shape depends on the count alone.
template <class Value, class Op, class At>
Value reduce_run(std::size_t count, Op& op, At at) {
  constexpr std::size_t lanes = 8;
  Value first = at(0);
  if (count < 2 * lanes) {
    for (std::size_t i = 1; i < count; ++i) first = op(first, at(i));
    return first;
  }
  Value lane[lanes] = {first, at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  std::size_t i = lanes;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) lane[l] = op(lane[l], at(i + l));
  for (std::size_t l = 0; i < count; ++i, ++l) lane[l] = op(lane[l], at(i));
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lane[l] = op(lane[l], lane[l + half]);
  return lane[0];
}

/// The values of pieces, in order, as a tree whose shape depends on their number alone.
template <class Value, class Op>
Value fold_pieces(const held_value<Value>* values, std::size_t count, Op& op) {
  if (count == 1) return values[0].value;
  std::size_t half = 1;
  while (2 * half < count) half *= 2;
  return op(fold_pieces(values, half, op), fold_pieces(values + half, count - half, op));
}

/// f(x, y, ...) of all elements, put together with op.  N as above.
template <std::size_t N, class Value, class Op, class F, class... T>
class reduce_program final : public span_program {
  static constexpr std::size_t leaf = 4096;  // elements

 public:
  reduce_program(Op& op, F& f) noexcept : op_(op), f_(f) {}
  void begin(std::size_t pieces) override { values_.assign(pieces, std::nullopt); }
  void run(std::size_t piece, unsigned, std::byte* const* p, std::size_t count, const std::size_t* at) override {
    run(piece, p, count, indices_at<N>(at), std::index_sequence_for<T...>{});
  }
  /// Of the pieces of this rank, in order.
  std::vector<held_value<Value>> values() const {
    std::vector<held_value<Value>> all;
    for (const std::optional<Value>& v : values_) all.push_back({*v});
    return all;
  }

 private:
  template <std::size_t... K>
  void run(std::size_t piece, std::byte* const* p, std::size_t count, const indices_of_element<N>& at,
           std::index_sequence<K...>) {
    std::optional<Value>& value = values_[piece];
    for (std::size_t first = 0; first < count; first += leaf) {
      const std::tuple<const T*...> x{reinterpret_cast<const T*>(p[K]) + first...};
      const Value v = reduce_run<Value>(std::min(leaf, count - first), op_, [&](std::size_t i) {
        return static_cast<Value>(call_at<N>(f_, at, first + i, std::get<K>(x)[i]...));
      });
      value = value ? op_(*value, v) : v;
    }
  }

  Op& op_;
  F& f_;
  std::vector<std::optional<Value>> values_;
};

/// The elements, one after the other, after `before`.
template <class U, class Op, class T>
U sum_in_order(std::optional<U> before, const T* x, std::size_t count, Op& op) {
  U sum = before ? op(*before, static_cast<U>(x[0])) : static_cast<U>(x[0]);
  for (std::size_t i = 1; i < count; ++i) sum = op(sum, static_cast<U>(x[i]));
  return sum;
}

/// The sum of each piece, as scan_program has it before it adds the pieces before.
template <class Op, class T, class U>
class piece_sums_program final : public span_program {
 public:
  /// `before`: elements of other ranks with which the first piece begins; `bring_in` has them in memory.
  piece_sums_program(Op& op, std::span<const T> before, std::function<void()> bring_in)
      : op_(op), before_(before), bring_in_(std::move(bring_in)) {}
  void begin(std::size_t pieces) override {
    sums_.assign(pieces, std::nullopt);
    if (pieces == 0 || before_.empty()) return;
    bring_in_();
    head_ = sum_in_order<U>(std::nullopt, before_.data(), before_.size(), op_);
  }
  void run(std::size_t piece, unsigned, std::byte* const* p, std::size_t count, const std::size_t*) override {
    sums_[piece] = sum_in_order(piece == 0 ? head_ : std::nullopt, reinterpret_cast<const T*>(p[0]), count, op_);
  }
  /// Of the elements before.
  const std::optional<U>& head() const noexcept { return head_; }
  std::vector<held_value<U>> values() const {
    std::vector<held_value<U>> all;
    for (const std::optional<U>& s : sums_) all.push_back({*s});
    return all;
  }

 private:
  Op& op_;
  const std::span<const T> before_;
  const std::function<void()> bring_in_;
  std::optional<U> head_;
  std::vector<std::optional<U>> sums_;
};

/// The sums of elements of other ranks: of whole pieces, and of the piece with which this rank's part begins.
template <class U>
struct scanned_before {
  std::optional<U> pieces, head;
};

/// Sums from the first element up to each: a piece is summed up by itself, and then what all before
/// it come to is added, while it is in the processor's cache still.  Exclusive: without the element itself, and
/// there is something before the first.
template <bool Exclusive, class Op, class T, class Out>
class scan_program final : public span_program {
  static constexpr std::size_t stopped = std::numeric_limits<std::size_t>::max();

 public:
  /// `before`: called once all is known of what lies before this rank's part.
  scan_program(Op& op, std::function<scanned_before<Out>()> before) : op_(op), before_(std::move(before)) {}
  void begin(std::size_t) override {
    scanned_before<Out> before = before_();
    head_ = std::move(before.head);
    carry_ = std::move(before.pieces);
  }
  void run(std::size_t piece, unsigned, std::byte* const* p, std::size_t count, const std::size_t*) override {
    const T* const x = reinterpret_cast<const T*>(p[0]);
    Out* const y = reinterpret_cast<Out*>(p[1]);
    const std::optional<Out> head = piece == 0 ? head_ : std::nullopt;
    Out sum = sum_in_order(head, x, 1, op_);
    if (!Exclusive) y[0] = sum;
    for (std::size_t i = 1; i < count; ++i) {
      const Out next = op_(sum, static_cast<Out>(x[i]));  // y may be x
      y[i] = Exclusive ? sum : next;
      sum = next;
    }
    // Pieces are begun in order, so whoever has the one before is at work.
    for (std::size_t done; (done = done_.load(std::memory_order_acquire)) != piece;) {
      if (done == stopped) return;
      done_.wait(done, std::memory_order_acquire);
    }
    const std::optional<Out> before = carry_;
    carry_ = before ? op_(*before, sum) : sum;
    std::size_t expected = piece;
    done_.compare_exchange_strong(expected, piece + 1, std::memory_order_acq_rel);
    done_.notify_all();
    if (!before) return;
    if (Exclusive) y[0] = head ? op_(*before, *head) : *before;
    for (std::size_t i = Exclusive; i < count; ++i) y[i] = op_(*before, y[i]);
  }
  void stop() noexcept override {
    done_.store(stopped, std::memory_order_release);
    done_.notify_all();
  }

 private:
  Op& op_;
  const std::function<scanned_before<Out>()> before_;
  std::optional<Out> head_;
  std::optional<Out> carry_;          ///< of whoever has piece number done_
  std::atomic<std::size_t> done_{0};  ///< pieces whose sum is in carry_
};

/// How many elements f puts into which bin.
template <class F, class T>
class histogram_program final : public span_program {
 public:
  histogram_program(F& f, std::size_t bins, unsigned threads)
      : f_(f), counts_(threads, std::vector<std::uint64_t>(bins + 1)) {}
  void run(std::size_t, unsigned thread, std::byte* const* p, std::size_t count, const std::size_t*) override {
    const T* const x = reinterpret_cast<const T*>(p[0]);
    std::uint64_t* const counts = counts_[thread].data();
    const std::size_t bins = counts_[thread].size() - 1;
    for (std::size_t i = 0; i < count; ++i) ++counts[std::min(static_cast<std::size_t>(f_(x[i])), bins)];
  }
  /// Of all threads; the last is that of elements in no bin.
  std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> all(counts_.front().size());
    for (const auto& c : counts_)
      for (std::size_t b = 0; b < all.size(); ++b) all[b] += c[b];
    return all;
  }

 private:
  F& f_;
  std::vector<std::vector<std::uint64_t>> counts_;
};

/// Values as the bytes that ranks tell each other.
template <class Value>
std::vector<std::byte> bytes_of_values(const std::vector<Value>& values) {
  std::vector<std::byte> b(values.size() * sizeof(Value));
  if (!b.empty()) std::memcpy(b.data(), values.data(), b.size());
  return b;
}
template <class Value>
void add_values(std::vector<Value>& to, const std::vector<std::byte>& b, const std::type_identity_t<Value>& any) {
  const std::size_t had = to.size();
  to.resize(had + b.size() / sizeof(Value), any);
  if (!b.empty()) std::memcpy(to.data() + had, b.data(), b.size());
}

}  // namespace ooc::detail
