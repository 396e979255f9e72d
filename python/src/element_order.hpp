// An order of elements that is known at run time: by one number, or by fields of records one after
// the other.
//
// NaN, and "not a time", come last in both directions, as in NumPy.  Records are sorted by their
// numbers in memory, and moved once; equal elements stay in their order.
//
// Threads: everything is const and may be called by several at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "oocarray/detail/sort_engine.hpp"

namespace ooc::python {

/// A part of an element that is compared; numbers are in the machine's byte order.
struct key_field {
  char kind = 0;           ///< as NumPy's dtype.kind: one of b i u f c M m S U
  std::size_t offset = 0;  ///< in the element
  std::size_t in_key = 0;  ///< in a key that is looked for
  std::size_t size = 0;
};

class element_order {
 public:
  /// Throws usage_error (errc::type_mismatch) for a field that has no order.
  element_order(std::vector<key_field> fields, bool descending);

  /// Negative: x comes before y.
  int compare(const std::byte* x, const std::byte* y) const { return compare(x, y, in_element, in_element); }
  int compare_with_key(const std::byte* element, const std::byte* key) const {
    return compare(element, key, in_element, in_key);
  }
  int compare_keys(const std::byte* x, const std::byte* y) const { return compare(x, y, in_key, in_key); }
  /// The only field; null: there are several.
  const key_field* only() const noexcept { return fields_.size() == 1 ? &fields_[0].field : nullptr; }
  bool descending() const noexcept { return descending_; }

 private:
  using place = std::size_t key_field::*;
  static constexpr place in_element = &key_field::offset, in_key = &key_field::in_key;
  int compare(const std::byte* x, const std::byte* y, place of_x, place of_y) const;

  using comparison = int (*)(const std::byte* x, const std::byte* y, std::size_t size, bool descending);
  struct compared {
    key_field field;
    comparison compare;
  };
  static comparison comparison_of(const key_field& f);

  std::vector<compared> fields_;
  bool descending_;
};

/// Sorts elements of so many bytes; by radix where an element is one number of up to 8 bytes.
std::unique_ptr<detail::sort_program> program_for(const element_order& order, std::size_t element_size);

/// Looks for `keys`, packed.  `after_equal`: the place behind the elements that are equal to a key.
class key_search final : public detail::search_program {
 public:
  key_search(const element_order& order, std::size_t element_size, const std::byte* keys, std::size_t count,
             std::size_t key_size, bool after_equal);

  std::span<const std::int64_t> places() const noexcept { return places_; }

  std::size_t element_size() const noexcept override { return element_size_; }
  std::size_t keys() const noexcept override { return by_key_.size(); }
  std::size_t keys_after(std::size_t first, std::size_t last, const std::byte* element) const override;
  void place(std::size_t k, const std::byte* elements, std::size_t count, std::uint64_t base) override;

 private:
  const std::byte* key(std::size_t k) const noexcept { return keys_ + by_key_[k] * key_size_; }
  bool before(const std::byte* element, const std::byte* key) const;

  const element_order& order_;
  std::size_t element_size_;
  const std::byte* keys_;
  std::size_t key_size_;
  bool after_equal_;
  std::vector<std::size_t> by_key_;  ///< their numbers, in the order of the keys
  std::vector<std::int64_t> places_;
};

}  // namespace ooc::python
