// gather(), scatter() and accumulate(): what may be asked for, before anything is transferred.
//
// They are no collective calls: a rank transfers by itself, and others see what it has written after
// the next sync(), because every block of it is on the record that sync() tells them.
#include <string>

#include "oocarray/error.hpp"
#include "runtime/array/element_transfer.hpp"
#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {
namespace {

std::string text_of(const char* call, const std::string& path) {
  return std::string(call) + " of array '" + path + "'";
}

void check_elements(const shared_array& a, const element_indices& list, std::size_t elements, const char* call) {
  a.local().check_open();
  if (list.count != elements)
    throw usage_error(errc::invalid_request, text_of(call, a.path()) + ": there are " + std::to_string(list.count) +
                                                 " indices, and " + std::to_string(elements) +
                                                 " elements in memory; give one for each index");
  check_indices(a.geometry(), list, text_of(call, a.path()));
}

void check_in_part(const shared_array& a, const element_indices& list, const char* call) {
  if (!a.owner_computes()) return;
  const auto [first, last] = a.rows_of(a.rank());
  const array_geometry& g = a.geometry();
  for (std::size_t i = 0; i < list.count; ++i) {
    const std::size_t* const index = list.first + i * list.numbers;
    const std::uint64_t row = list.numbers == 1 ? g.coordinates_of(*index)[0] : *index;
    if (row >= first && row < last) continue;
    throw usage_error(errc::invalid_request,
                      text_of(call, a.path()) + ": the index " + to_string({index, list.numbers}) + " at position " +
                          std::to_string(i) + " lies in row " + std::to_string(row) + ", and the part of rank " +
                          std::to_string(a.rank()) + " is rows " + std::to_string(first) + " to " +
                          std::to_string(last) + " (owner_computes)");
  }
}

element_transfer transfer_of(shared_array& a, const element_indices& list, const char* call) {
  return {a.local(), list.count, a.log(), text_of(call, a.path())};
}

}  // namespace

void indexed_elements::gather(const element_indices& from, std::byte* to, std::size_t elements) const {
  check_elements(array_, from, elements, "gather()");
  if (from.count == 0) return;
  transfer_of(array_, from, "gather()").gather(from, to);
}

void indexed_elements::scatter(const element_indices& to, const std::byte* from, std::size_t elements) const {
  array_.local().check_writable("be scattered to");
  check_elements(array_, to, elements, "scatter()");
  check_in_part(array_, to, "scatter()");
  if (to.count == 0) return;
  transfer_of(array_, to, "scatter()").scatter(to, from);
}

void indexed_elements::accumulate(const element_indices& to, const std::byte* from, std::size_t elements,
                                  const element_operation& op) const {
  array_.local().check_writable("accumulate");
  check_elements(array_, to, elements, "accumulate()");
  check_in_part(array_, to, "accumulate()");
  if (to.count == 0) return;
  transfer_of(array_, to, "accumulate()").accumulate(to, from, op);
}

}  // namespace ooc::detail
