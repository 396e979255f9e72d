#include "copying/turned_source.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/interrupt.hpp"
#include "formats/byte_order.hpp"
#include "oocarray/any_array.hpp"
#include "oocarray/detail/copy_engine.hpp"
#include "oocarray/error.hpp"
#include "oocarray/open_file.hpp"

namespace ooc::tool {

namespace {

/// `Units` numbers whose bytes stand in the other order.
template <class T, std::size_t Units>
struct foreign {
  std::array<T, Units> units;
};
template <class T, std::size_t Units>
struct native {
  explicit native(const foreign<T, Units>& f) : units(f.units) {
    for (T& x : units) x = reversed_bytes(x);
  }
  std::array<T, Units> units;
};

template <class T>
detail::element_kernel swapping_kernel(std::size_t units) {
  if (units == 1) return detail::kernel_for<foreign<T, 1>, native<T, 1>>();
  if (units == 2) return detail::kernel_for<foreign<T, 2>, native<T, 2>>();
  return {};
}

detail::element_kernel kernel_of(const std::string& file, const storage::npy_header& h) {
  if (h.swap_unit == 0) return detail::kernel_for_bytes(h.element_size);
  const std::size_t units = h.element_size / h.swap_unit;
  const detail::element_kernel k = h.swap_unit == 2   ? swapping_kernel<std::uint16_t>(units)
                                   : h.swap_unit == 4 ? swapping_kernel<std::uint32_t>(units)
                                   : h.swap_unit == 8 ? swapping_kernel<std::uint64_t>(units)
                                                      : detail::element_kernel();
  if (!k.run)
    throw usage_error(errc::type_mismatch,
                      "'" + file +
                          "' is in Fortran order, and its elements have the other byte order, which is turned "
                          "round only for numbers of 2 to 8 bytes and complex ones of them; give --transpose "
                          "to take its dimensions reversed");
  return k;
}

}  // namespace

turned_source::turned_source(std::string file, storage::npy_header header, std::function<void()> verify_first)
    : file_(std::move(file)), header_(std::move(header)), verify_first_(std::move(verify_first)) {
  (void)kernel_of(file_, header_);
}

void turned_source::check(const box&) {
  if (verify_first_) verify_first_();
}

void turned_source::copy(const box&, array_target& to, std::uint64_t buffer,
                         const std::function<void(std::uint64_t)>& advance) {
  runtime rt({.memory = std::max<std::uint64_t>(2 * buffer, 16_MiB), .hints = false});
  const located where = to.as_array();
  const std::vector<std::size_t> shape(header_.shape.begin(), header_.shape.end());
  // Its bytes as they are: what they stand for is the kernel's matter.
  const element_format bytes{"struct" + std::to_string(header_.element_size), header_.element_size};
  any_array from = open_any_file(rt, file_, open_read_only, bytes,
                                 {.format = ooc::file_format::raw,
                                  .extents = shape,
                                  .offset = header_.data_offset,
                                  .order = index_order::column_major});
  any_array into(rt, where.store, where.path, ooc::open);

  detail::copy_request r;
  r.verb = "transposition";
  r.from = &from.core();
  r.to = &into.core();
  r.from_size = r.to_size = header_.element_size;
  r.from_lower.assign(shape.size(), 0);
  r.to_lower.assign(to.at().begin(), to.at().end());
  r.extents = shape;
  for (std::size_t d = shape.size(); d-- > 0;) r.permutation.push_back(d);
  r.kernel = kernel_of(file_, header_);
  r.options.mark = false;  // nobody sees it before it is complete
  std::uint64_t told = 0;
  const std::uint64_t all = storage::array_bytes(to.copied());
  r.options.progress = [&](const pass_progress& p) {
    const auto done = static_cast<std::uint64_t>(p.part() * static_cast<double>(all));
    if (done > told) advance(done - std::exchange(told, done));
    try {
      check_interrupted();
    } catch (const interrupted&) {
      return false;
    }
    return true;
  };
  try {
    (void)detail::run_copy(r);
  } catch (const error& e) {
    if (e.code() == std::errc::operation_canceled) check_interrupted();
    throw;
  }
  into.close();
  if (all > told) advance(all - told);
}

}  // namespace ooc::tool
