#include "element_order.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "oocarray/detail/sort_program.hpp"
#include "oocarray/error.hpp"

namespace ooc::python {

namespace {

template <class T>
T loaded(const std::byte* p) noexcept {
  T x;
  std::memcpy(&x, p, sizeof(T));
  return x;
}

template <class T>
int compare_values(T x, T y, bool descending) noexcept {
  const int c = (x > y) - (x < y);
  return descending ? -c : c;
}

/// What is no number comes last.
template <class T>
int compare_floats(T x, T y, bool descending) noexcept {
  if (x != x || y != y) return (x != x) - (y != y);
  return compare_values(x, y, descending);
}

template <class T>
int compare_numbers(const std::byte* x, const std::byte* y, std::size_t, bool descending) {
  if constexpr (std::is_floating_point_v<T>)
    return compare_floats(loaded<T>(x), loaded<T>(y), descending);
  else
    return compare_values(loaded<T>(x), loaded<T>(y), descending);
}

/// Half precision, as bits that compare as the numbers do; both zeros are equal, NaN is the greatest.
std::uint16_t half_bits(std::uint16_t b) noexcept {
  if ((b & 0x7fff) > 0x7c00) return 0xffff;
  if ((b & 0x7fff) == 0) return 0x8000;
  return static_cast<std::uint16_t>((b & 0x8000) != 0 ? ~b : b | 0x8000);
}

int compare_halves(const std::byte* x, const std::byte* y, std::size_t, bool descending) {
  const std::uint16_t a = half_bits(loaded<std::uint16_t>(x)), b = half_bits(loaded<std::uint16_t>(y));
  if (a == 0xffff || b == 0xffff) return (a == 0xffff) - (b == 0xffff);
  return compare_values(a, b, descending);
}

/// By the real part and then the imaginary one; those of which one is no number come last.
template <class T>
int compare_complex(const std::byte* x, const std::byte* y, std::size_t, bool descending) {
  const T a = loaded<T>(x), b = loaded<T>(y);
  const T c = loaded<T>(x + sizeof(T)), d = loaded<T>(y + sizeof(T));
  const int of_x = 2 * (a != a) + (c != c), of_y = 2 * (b != b) + (d != d);
  if (of_x != of_y) return of_x - of_y;
  if (a == a && a != b) return compare_values(a, b, descending);
  return c == c ? compare_values(c, d, descending) : 0;
}

int compare_times(const std::byte* x, const std::byte* y, std::size_t, bool descending) {
  constexpr auto none = std::numeric_limits<std::int64_t>::min();
  const auto a = loaded<std::int64_t>(x), b = loaded<std::int64_t>(y);
  if (a == none || b == none) return (a == none) - (b == none);
  return compare_values(a, b, descending);
}

int compare_bytes(const std::byte* x, const std::byte* y, std::size_t size, bool descending) {
  const int c = std::memcmp(x, y, size);
  return descending ? -c : c;
}

int compare_text(const std::byte* x, const std::byte* y, std::size_t size, bool descending) {
  for (std::size_t k = 0; k < size; k += sizeof(char32_t))
    if (const int c = compare_values(loaded<char32_t>(x + k), loaded<char32_t>(y + k), descending); c != 0) return c;
  return 0;
}

/// Integers and times as bits: x ^ flipped, less `less`, which puts "not a time" last.
template <class T>
struct integer_order {
  static constexpr bool by_bits = true;
  using bits_type = T;
  T flipped = 0;
  T less = 0;

  T bits(const T& x) const noexcept { return static_cast<T>((x ^ flipped) - less); }
  bool operator()(const T& x, const T& y) const noexcept { return bits(x) < bits(y); }
};

template <class T>
struct float_order {
  static constexpr bool by_bits = true;
  using bits_type = detail::unsigned_of<sizeof(T)>;
  bool descending = false;

  bits_type bits(const T& x) const noexcept {
    const bits_type b = detail::ascending_bits(x);
    return descending && x == x ? static_cast<bits_type>(~b) : b;
  }
  bool operator()(const T& x, const T& y) const noexcept { return bits(x) < bits(y); }
};

struct half_order {
  static constexpr bool by_bits = true;
  using bits_type = std::uint16_t;
  bool descending = false;

  std::uint16_t bits(const std::uint16_t& x) const noexcept {
    const std::uint16_t b = half_bits(x);
    return descending && b != 0xffff ? static_cast<std::uint16_t>(~b) : b;
  }
  bool operator()(const std::uint16_t& x, const std::uint16_t& y) const noexcept { return bits(x) < bits(y); }
};

template <class T, class Order>
std::unique_ptr<detail::sort_program> by_radix(Order order) {
  return std::make_unique<detail::ordered_program<T, Order>>(order, true);
}

template <class T>
std::unique_ptr<detail::sort_program> integers(char kind, bool descending) {
  constexpr T sign = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  integer_order<T> o;
  if (kind != 'u' && kind != 'b') o.flipped = sign;
  if (descending) o.flipped = static_cast<T>(~o.flipped);
  if ((kind == 'M' || kind == 'm') && !descending) o.less = 1;
  return by_radix<T>(o);
}

/// Null: not by radix.
std::unique_ptr<detail::sort_program> numbers(const key_field& f, bool descending) {
  if (f.kind == 'f') {
    if (f.size == 2) return by_radix<std::uint16_t>(half_order{descending});
    if (f.size == 4) return by_radix<float>(float_order<float>{descending});
    if (f.size == 8) return by_radix<double>(float_order<double>{descending});
    return nullptr;
  }
  if (std::string("biuMm").find(f.kind) == std::string::npos) return nullptr;
  if (f.size == 1) return integers<std::uint8_t>(f.kind, descending);
  if (f.size == 2) return integers<std::uint16_t>(f.kind, descending);
  if (f.size == 4) return integers<std::uint32_t>(f.kind, descending);
  return integers<std::uint64_t>(f.kind, descending);
}

/// Elements of any size, by comparisons.
class record_program final : public detail::sort_program {
 public:
  record_program(const element_order& order, std::size_t size) : order_(order), size_(size) {}

  std::size_t element_size() const noexcept override { return size_; }
  bool needs_scratch() const noexcept override { return true; }
  bool allocates() const noexcept override { return false; }
  bool less(const std::byte* x, const std::byte* y) const override { return order_.compare(x, y) < 0; }

  /// The numbers of the elements fit into the scratch, as far as an element has as many bytes.
  bool sort_run(std::byte* elements, std::size_t count, std::byte* scratch) const override {
    void* room = scratch;
    std::size_t bytes = count * size_;
    if (std::align(alignof(std::uint64_t), count * sizeof(std::uint64_t), room, bytes)) {
      sort_numbers(elements, {static_cast<std::uint64_t*>(room), count});
    } else {
      std::vector<std::uint64_t> numbers(count);
      sort_numbers(elements, numbers);
    }
    return false;
  }

  std::size_t least_last(std::span<const detail::sorted_window> w) const override {
    std::size_t least = w.size();
    for (std::size_t k = 0; k < w.size(); ++k)
      if (w[k].more && (least == w.size() || order_.compare(last(w[k]), last(w[least])) < 0)) least = k;
    return least;
  }

  void before(std::span<const detail::sorted_window> w, std::size_t of, std::size_t x,
              std::size_t* counts) const override {
    const std::byte* const e = at(w[of].first, x);
    for (std::size_t k = 0; k < w.size(); ++k) counts[k] = k == of ? x : first_after(w[k], e, k < of);
  }

  void merge(std::span<const detail::sorted_window> w, std::byte* to) const override {
    std::vector<detail::cursor<std::byte>> from;
    std::size_t count = 0;
    for (const detail::sorted_window& one : w) {
      if (one.count == 0) continue;
      from.push_back({one.first, at(one.first, one.count)});
      count += one.count;
    }
    if (from.empty()) return;
    const auto beats = [&](std::uint32_t x, std::uint32_t y) {
      if (from[x].at == from[x].end) return false;
      if (from[y].at == from[y].end) return true;
      const int c = order_.compare(from[x].at, from[y].at);
      return c < 0 || (c == 0 && x < y);
    };
    std::vector<std::uint32_t> leaves(from.size());
    std::iota(leaves.begin(), leaves.end(), 0U);
    detail::loser_tree<std::uint32_t, decltype(beats)> tree(std::move(leaves), beats);
    for (std::size_t i = 0; i < count; ++i, to += size_) {
      const std::uint32_t k = tree.winner();
      std::memcpy(to, from[k].at, size_);
      from[k].at += size_;
      tree.replay(k);
    }
  }

  std::size_t sorted_until(const std::byte* elements, std::size_t count) const override {
    for (std::size_t i = 1; i < count; ++i)
      if (order_.compare(at(elements, i), at(elements, i - 1)) < 0) return i;
    return count;
  }

 private:
  const std::byte* at(const std::byte* first, std::size_t k) const noexcept { return first + k * size_; }
  const std::byte* last(const detail::sorted_window& w) const noexcept { return at(w.first, w.count - 1); }

  std::size_t first_after(const detail::sorted_window& w, const std::byte* e, bool equal_too) const {
    std::size_t low = 0, high = w.count;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      const int c = order_.compare(at(w.first, middle), e);
      if (c < 0 || (c == 0 && equal_too))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  void sort_numbers(std::byte* elements, std::span<std::uint64_t> numbers) const {
    std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
    std::sort(numbers.begin(), numbers.end(), [&](std::uint64_t x, std::uint64_t y) {
      const int c = order_.compare(at(elements, x), at(elements, y));
      return c != 0 ? c < 0 : x < y;
    });
    // Place k is for the element that is now at numbers[k]; each cycle of places needs room for one.
    std::vector<std::byte> kept(size_);
    for (std::uint64_t k = 0; k < numbers.size(); ++k) {
      if (numbers[k] == k) continue;
      std::memcpy(kept.data(), at(elements, k), size_);
      std::uint64_t place = k;
      while (numbers[place] != k) {
        const std::uint64_t from = std::exchange(numbers[place], place);
        std::memcpy(elements + place * size_, at(elements, from), size_);
        place = from;
      }
      numbers[place] = place;
      std::memcpy(elements + place * size_, kept.data(), size_);
    }
  }

  const element_order& order_;
  const std::size_t size_;
};

}  // namespace

element_order::comparison element_order::comparison_of(const key_field& f) {
  switch (f.kind) {
    case 'b':
    case 'u':
      if (f.size == 1) return compare_numbers<std::uint8_t>;
      if (f.size == 2) return compare_numbers<std::uint16_t>;
      if (f.size == 4) return compare_numbers<std::uint32_t>;
      return compare_numbers<std::uint64_t>;
    case 'i':
      if (f.size == 1) return compare_numbers<std::int8_t>;
      if (f.size == 2) return compare_numbers<std::int16_t>;
      if (f.size == 4) return compare_numbers<std::int32_t>;
      return compare_numbers<std::int64_t>;
    case 'f':
      if (f.size == 2) return compare_halves;
      if (f.size == 4) return compare_numbers<float>;
      if (f.size == 8) return compare_numbers<double>;
      return compare_numbers<long double>;
    case 'c':
      if (f.size == 8) return compare_complex<float>;
      if (f.size == 16) return compare_complex<double>;
      return compare_complex<long double>;
    case 'M':
    case 'm': return compare_times;
    case 'S': return compare_bytes;
    case 'U': return compare_text;
    default: throw usage_error(errc::type_mismatch, std::string("elements of kind '") + f.kind + "' have no order");
  }
}

element_order::element_order(std::vector<key_field> fields, bool descending) : descending_(descending) {
  for (const key_field& f : fields) fields_.push_back({f, comparison_of(f)});
}

int element_order::compare(const std::byte* x, const std::byte* y, place of_x, place of_y) const {
  for (const compared& c : fields_)
    if (const int r = c.compare(x + c.field.*of_x, y + c.field.*of_y, c.field.size, descending_); r != 0) return r;
  return 0;
}

std::unique_ptr<detail::sort_program> program_for(const element_order& order, std::size_t element_size) {
  if (const key_field* const f = order.only(); f && f->size == element_size)
    if (auto p = numbers(*f, order.descending())) return p;
  return std::make_unique<record_program>(order, element_size);
}

key_search::key_search(const element_order& order, std::size_t element_size, const std::byte* keys, std::size_t count,
                       std::size_t key_size, bool after_equal)
    : order_(order),
      element_size_(element_size),
      keys_(keys),
      key_size_(key_size),
      after_equal_(after_equal),
      by_key_(count),
      places_(count) {
  std::iota(by_key_.begin(), by_key_.end(), std::size_t{0});
  std::sort(by_key_.begin(), by_key_.end(), [&](std::size_t x, std::size_t y) {
    return order_.compare_keys(keys_ + x * key_size_, keys_ + y * key_size_) < 0;
  });
}

bool key_search::before(const std::byte* element, const std::byte* key) const {
  const int c = order_.compare_with_key(element, key);
  return c < 0 || (c == 0 && after_equal_);
}

std::size_t key_search::keys_after(std::size_t first, std::size_t last, const std::byte* element) const {
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (before(element, key(middle)))
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

void key_search::place(std::size_t k, const std::byte* elements, std::size_t count, std::uint64_t base) {
  std::size_t low = 0, high = count;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (before(elements + middle * element_size_, key(k)))
      low = middle + 1;
    else
      high = middle;
  }
  places_[by_key_[k]] = static_cast<std::int64_t>(base + low);
}

}  // namespace ooc::python
