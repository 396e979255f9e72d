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

}  // namespace

void shared_array::check_elements(const element_indices& list, std::size_t elements,
                                  const char* call) const {
  local_.check_open();
  if (list.count != elements)
    throw usage_error(errc::invalid_request, text_of(call, path()) + ": there are " +
                                                 std::to_string(list.count) + " indices, and " +
                                                 std::to_string(elements) +
                                                 " elements in memory; give one for each index");
  check_indices(geometry(), list, text_of(call, path()));
}

void shared_array::check_in_part(const element_indices& list, const char* call) const {
  if (!owner_computes_) return;
  const auto [first, last] = rows_of(rank());
  const array_geometry& g = geometry();
  for (std::size_t i = 0; i < list.count; ++i) {
    const std::size_t* const index = list.first + i * list.numbers;
    const std::uint64_t row = list.numbers == 1 ? g.coordinates_of(*index)[0] : *index;
    if (row >= first && row < last) continue;
    throw usage_error(errc::invalid_request,
                      text_of(call, path()) + ": the index " + to_string({index, list.numbers}) +
                          " at position " + std::to_string(i) + " lies in row " +
                          std::to_string(row) + ", and the part of rank " +
                          std::to_string(rank()) + " is rows " + std::to_string(first) + " to " +
                          std::to_string(last) + " (owner_computes)");
  }
}

void shared_array::gather(const element_indices& from, std::byte* to, std::size_t elements) {
  check_elements(from, elements, "gather()");
  if (from.count == 0) return;
  element_transfer(local_, from.count, log_.get(), text_of("gather()", path())).gather(from, to);
}

void shared_array::scatter(const element_indices& to, const std::byte* from, std::size_t elements) {
  local_.check_writable("be scattered to");
  check_elements(to, elements, "scatter()");
  check_in_part(to, "scatter()");
  if (to.count == 0) return;
  element_transfer(local_, to.count, log_.get(), text_of("scatter()", path())).scatter(to, from);
}

void shared_array::accumulate(const element_indices& to, const std::byte* from,
                              std::size_t elements, const element_operation& op) {
  local_.check_writable("accumulate");
  check_elements(to, elements, "accumulate()");
  check_in_part(to, "accumulate()");
  if (to.count == 0) return;
  element_transfer(local_, to.count, log_.get(), text_of("accumulate()", path()))
      .accumulate(to, from, op);
}

}  // namespace ooc::detail
