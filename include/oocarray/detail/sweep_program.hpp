// The part of a sweep that has types: slabs as the kernel sees them, and the calls of the kernel.
// See algorithm/sweep.hpp.
//
// Everything here is a view of the engine's memory and valid during one call of the kernel.  Spans are returned
// const, so that an assignment to one, which would copy nothing, does not compile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if __has_include(<mdspan>)
#include <mdspan>
#endif

#include "oocarray/detail/held_value.hpp"
#include "oocarray/detail/sweep_engine.hpp"

namespace ooc {
namespace detail {

/// A stencil has none of these.
struct nothing {};

template <class Value, class F>
struct sweep_reduction {
  Value identity;
  F combine;
};

}  // namespace detail

/// M indices into a slab; strides are those of its dimensions, the last is 1.  Indices are signed:
/// where a dimension is periodic, -1 is the last element.
template <class T, std::size_t M>
class slab_view {
 public:
  slab_view(T* origin, const std::ptrdiff_t* strides) noexcept : origin_(origin) {
    if constexpr (M > 1)
      for (std::size_t k = 0; k + 1 < M; ++k) strides_[k] = strides[k];
  }
  slab_view(const slab_view&) = default;
  /// Of one that has a name: it becomes other elements, as a view does.
  slab_view& operator=(const slab_view&) & = default;
  /// A slab does not know how long it is, so out[j] = in[0][j] cannot copy a row: copy spans, or element by element.
  template <class From>
  void operator=(const From&) && = delete;

  decltype(auto) operator[](std::ptrdiff_t i) const noexcept {
    if constexpr (M == 1)
      return static_cast<T&>(origin_[i]);
    else
      return slab_view<T, M - 1>(origin_ + i * strides_[0], strides_.data() + 1);
  }
  T* data() const noexcept { return origin_; }
  /// Of a row, the elements lower <= index < upper.  Only what the kernel may touch is in memory: of `out` its own
  /// elements, of `in` these and the radius on either side.
  const std::span<T> span(std::ptrdiff_t lower, std::ptrdiff_t upper) const noexcept requires(M == 1) {
    return {origin_ + lower, static_cast<std::size_t>(upper - lower)};
  }
#ifdef __cpp_lib_mdspan
  /// The same of a slab of any dimensions: its index 0 is `lower`.
  auto mdspan(const std::array<std::ptrdiff_t, M>& lower, const std::array<std::ptrdiff_t, M>& upper) const noexcept {
    using extents_type = std::dextents<std::ptrdiff_t, M>;
    std::array<std::ptrdiff_t, M> extents{}, strides{};
    std::copy(strides_.begin(), strides_.end(), strides.begin());
    strides[M - 1] = 1;
    T* first = origin_;
    for (std::size_t k = 0; k < M; ++k) {
      extents[k] = upper[k] - lower[k];
      first += lower[k] * strides[k];
    }
    return std::mdspan<T, extents_type, std::layout_stride>(
        first, typename std::layout_stride::template mapping<extents_type>(extents_type(extents), strides));
  }
#endif

 private:
  T* origin_;
  std::array<std::ptrdiff_t, (M > 1 ? M - 1 : 0)> strides_{};
};

/// The slabs around one, before the step: [d] is d places further on.
template <class T, std::size_t N>
class slabs_around {
 public:
  slabs_around(const std::byte* const* middle, const std::ptrdiff_t* strides) noexcept
      : middle_(middle), strides_(strides) {}
  slab_view<const T, N - 1> operator[](std::ptrdiff_t d) const noexcept {
    return {reinterpret_cast<const T*>(middle_[d]), strides_ + 1};
  }

 private:
  const std::byte* const* middle_;
  const std::ptrdiff_t* strides_;
};

template <class T>
class slabs_around<T, 1> {
 public:
  explicit slabs_around(const T* middle) noexcept : middle_(middle) {}
  const T& operator[](std::ptrdiff_t d) const noexcept { return middle_[d]; }

 private:
  const T* middle_;
};

/// The slab that a kernel computes, or a part of it.
template <std::size_t N, class... T>
class slab_to_compute {
 public:
  slab_to_compute(const detail::sweep_piece& p, std::size_t number) noexcept : piece_(&p), number_(number) {}
  slab_to_compute(const slab_to_compute&) = default;
  slab_to_compute& operator=(const slab_to_compute&) = delete;  // which elements would it copy?

  /// Its index in the array, and the step that computes it, from 1.
  std::size_t index() const noexcept { return piece_->index + number_; }
  std::size_t step() const noexcept { return piece_->step; }
  /// The value that the kernel returns is wanted.
  bool reported() const noexcept { return piece_->reported; }
  /// The range that is to be computed, in dimension k = 1 ... N - 1.
  std::ptrdiff_t lower(std::size_t k) const noexcept { return piece_->lower[k]; }
  std::ptrdiff_t upper(std::size_t k) const noexcept { return piece_->upper[k]; }
  /// Of the array.
  std::size_t extent(std::size_t k) const noexcept { return piece_->extents[k]; }

  /// Field number F: its slab, or for N = 1 its element.
  template <std::size_t F>
  decltype(auto) get() const noexcept {
    using type = std::tuple_element_t<F, std::tuple<T...>>;
    type* const p = reinterpret_cast<type*>(piece_->out[F]);
    if constexpr (N == 1)
      return static_cast<type&>(p[number_]);
    else
      return slab_view<type, N - 1>(p, piece_->out_strides + 1);
  }
  /// Where there is one field.
  decltype(auto) operator[](std::ptrdiff_t i) const noexcept requires(sizeof...(T) == 1 && N > 1) {
    return get<0>()[i];
  }
  /// The elements that are to be computed.
  const std::span<std::tuple_element_t<0, std::tuple<T...>>> span() const noexcept
      requires(sizeof...(T) == 1 && N == 2) {
    return get<0>().span(lower(1), upper(1));
  }
#ifdef __cpp_lib_mdspan
  auto mdspan() const noexcept requires(sizeof...(T) == 1 && N > 1) {
    std::array<std::ptrdiff_t, N - 1> first{}, last{};
    for (std::size_t k = 1; k < N; ++k) first[k - 1] = lower(k), last[k - 1] = upper(k);
    return get<0>().mdspan(first, last);
  }
#endif
  auto& value() const noexcept requires(sizeof...(T) == 1 && N == 1) { return get<0>(); }

 private:
  const detail::sweep_piece* piece_;
  std::size_t number_;
};

namespace detail {

template <class Reduction>
struct value_of_reduction {
  using type = nothing;
};
template <class Value, class F>
struct value_of_reduction<sweep_reduction<Value, F>> {
  using type = Value;
};

/// One thing as it is, several as a tuple.
template <class T>
T only_or_all(std::tuple<T> all) {
  return std::get<0>(std::move(all));
}
template <class... T>
std::tuple<T...> only_or_all(std::tuple<T...> all) {
  return all;
}

template <std::size_t N, class Stencil, class... T>
class stencil_program final : public sweep_program {
  template <class C>
  using held_by = typename std::remove_cv_t<std::remove_pointer_t<C>>::value_type;
  using reduction_type = decltype(Stencil::reduction);
  using callback_type = decltype(Stencil::callback);
  static constexpr std::size_t fields = sizeof...(T);
  static constexpr std::size_t coefficients = std::tuple_size_v<decltype(Stencil::coefficients)>;
  static constexpr bool has_callback = !std::is_same_v<callback_type, nothing>;

 public:
  using value_type = typename value_of_reduction<reduction_type>::type;
  static constexpr bool has_edges = !std::is_same_v<decltype(Stencil::completed), nothing>;
  static constexpr bool has_values = !std::is_same_v<value_type, nothing>;

  explicit stencil_program(const Stencil& s) noexcept : stencil_(s) {}
  std::vector<value_type> take_values() { return std::move(values_); }

  void compute(const sweep_piece& given) override {
    const sweep_piece p = given;  // whose address nobody else has: the loop need not read it again
    for (std::size_t i = 0; i < p.count; ++i) {
      slab_to_compute<N, T...> out(p, i);
      if constexpr (has_values) {
        const value_type v = call(stencil_.kernel, out, p, i);
        if (p.reported) slots_[p.slot + i] = {v};
      } else {
        call(stencil_.kernel, out, p, i);
      }
    }
  }
  void complete(const sweep_piece& p) override {
    if constexpr (has_edges)
      for (std::size_t i = 0; i < p.count; ++i) {
        slab_to_compute<N, T...> out(p, i);
        const auto in = slabs_of(p, i, std::index_sequence_for<T...>{});
        stencil_.completed(out, in);
      }
  }

  void begin_values(std::size_t slots, bool keep) override {
    if constexpr (has_values) {
      slots_.resize(slots);
      keep_ = keep;
      of_slabs_.clear();
      if (!keep) of_slabs_.push_back({stencil_.reduction.identity});
    }
  }
  void fold(std::size_t slot, std::size_t slabs, std::size_t pieces) override {
    if constexpr (has_values)
      for (std::size_t s = 0; s < slabs; ++s, slot += pieces) {
        value_type v = slots_[slot].value;
        for (std::size_t q = 1; q < pieces; ++q) v = stencil_.reduction.combine(v, slots_[slot + q].value);
        if (keep_)
          of_slabs_.push_back({v});
        else
          of_slabs_[0].value = stencil_.reduction.combine(of_slabs_[0].value, v);
      }
  }
  std::vector<std::byte> folded() override {
    std::vector<std::byte> b;
    if constexpr (has_values) {
      b.resize(of_slabs_.size() * sizeof(value_type));
      if (!b.empty()) std::memcpy(b.data(), of_slabs_.data(), b.size());
    }
    return b;
  }
  void combine(const std::vector<std::vector<std::byte>>& of_ranks) override {
    if constexpr (has_values) {
      if (!keep_ && of_ranks.size() == 1) {
        values_.push_back(of_slabs_[0].value);
        return;
      }
      value_type all = stencil_.reduction.identity;
      for (const auto& rank : of_ranks)
        for (std::size_t at = 0; at + sizeof(value_type) <= rank.size(); at += sizeof(value_type)) {
          value_type v = stencil_.reduction.identity;
          std::memcpy(&v, rank.data() + at, sizeof(value_type));
          all = stencil_.reduction.combine(all, v);
        }
      values_.push_back(all);
    }
  }
  bool report(std::size_t step) override {
    if constexpr (has_callback) {
      const auto told = [&] {
        if constexpr (has_values) {
          const value_type value = values_.back();
          return stencil_.callback(step, value);
        } else {
          return stencil_.callback(step);
        }
      };
      if constexpr (std::is_void_v<decltype(told())>)
        told();
      else
        return static_cast<bool>(told());
    }
    return true;
  }

 private:
  /// Slabs of field or coefficient number `which` around slab number i of the piece.
  template <class U>
  static slabs_around<U, N> around(const sweep_piece& p, std::size_t which, std::size_t radius,
                                   std::size_t i) noexcept {
    const std::byte* const* const middle = p.in + which * (2 * radius + 1) + radius;
    if constexpr (N == 1)
      return slabs_around<U, 1>(reinterpret_cast<const U*>(*middle) + i);
    else
      return {middle, p.in_strides};
  }
  template <std::size_t... F>
  auto slabs_of(const sweep_piece& p, std::size_t i, std::index_sequence<F...>) const noexcept {
    return only_or_all(std::tuple(around<T>(p, F, stencil_.radius[0], i)...));
  }
  template <std::size_t... C>
  auto coefficients_of(const sweep_piece& p, std::size_t i, std::index_sequence<C...>) const noexcept {
    using arrays = decltype(Stencil::coefficients);
    return only_or_all(
        std::tuple(around<held_by<std::tuple_element_t<C, arrays>>>(p, fields + C, stencil_.radius[0], i)...));
  }
  template <class F>
  decltype(auto) call(const F& f, slab_to_compute<N, T...>& out, const sweep_piece& p, std::size_t i) const {
    const auto in = slabs_of(p, i, std::index_sequence_for<T...>{});
    if constexpr (coefficients == 0)
      return f(out, in);
    else
      return f(out, in, coefficients_of(p, i, std::make_index_sequence<coefficients>{}));
  }

  const Stencil& stencil_;
  bool keep_ = false;
  std::vector<held_value<value_type>> slots_;     ///< written by several threads at once
  std::vector<held_value<value_type>> of_slabs_;  ///< one of each slab, or one of all
  std::vector<value_type> values_;                ///< of the steps that were reported
};

}  // namespace detail
}  // namespace ooc

// `auto [u, v] = out;`
template <std::size_t N, class... T>
struct std::tuple_size<ooc::slab_to_compute<N, T...>> : std::integral_constant<std::size_t, sizeof...(T)> {};
template <std::size_t F, std::size_t N, class... T>
struct std::tuple_element<F, ooc::slab_to_compute<N, T...>> {
  using type = decltype(std::declval<const ooc::slab_to_compute<N, T...>&>().template get<F>());
};
