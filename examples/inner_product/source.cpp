#include "inner_product/source.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/command_line.hpp"
#include "harness/progress_bar.hpp"
#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/layout/npy.hpp"

namespace inner_product_example {
namespace {

constexpr std::size_t piece = std::size_t{1} << 17;  // elements

/// The elements of a source in order; a .npy file needs no store.
template <class T>
class stream {
 public:
  stream(const source& from, const ooc::store* s) : name_(from.path()) {
    if (from.is_npy()) {
      npy_.open(name_, std::ios::binary);
      if (!npy_) throw examples::bad_option(name_ + ": cannot be opened; give a readable .npy file");
      const auto h = ooc::storage::read_npy_header(npy_, name_);
      if (h.element_type != ooc::element_type<T>::name() || h.swap_unit != 0 || h.shape.size() != 1)
        throw examples::bad_option(name_ + ": holds " + std::to_string(h.shape.size()) + " dimensions of " +
                                   h.element_type + (h.swap_unit != 0 ? " in the other byte order" : "") +
                                   ", not a vector of " + ooc::element_type<T>::name() + "; see --type");
      elements_ = h.shape[0];
    } else {
      file_.emplace(ooc::file::open(*s, name_));
      elements_ = file_->size() / sizeof(T);
    }
  }

  std::uint64_t elements() const noexcept { return elements_; }

  /// The next elements, all of them.
  void next(std::span<T> out) {
    const std::span<std::byte> bytes = std::as_writable_bytes(out);
    std::size_t got = 0;
    if (file_) {
      got = file_->read(bytes);
    } else {
      npy_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      got = static_cast<std::size_t>(npy_.gcount());
    }
    if (got != bytes.size())
      throw ooc::io_error(std::make_error_code(std::errc::io_error), name_ + ": ends before its last element");
  }

 private:
  std::string name_;
  std::ifstream npy_;
  std::optional<ooc::file> file_;
  std::uint64_t elements_ = 0;
};

}  // namespace

source::source(const std::string& text) : path_(text), npy_(text.ends_with(".npy")) {
  if (npy_) return;
  if (!text.starts_with("store:") || text.size() == 6)
    throw examples::bad_option("'" + text + "' is not a vector; give FILE.npy or store:PATH");
  path_ = text.substr(6);
}

template <class T>
void source::check() const {
  if (npy_) stream<T>(*this, nullptr);
}

template <class T>
void source::import_to(ooc::runtime& rt, const ooc::store& s, const std::string& to, bool quiet) const {
  stream<T> in(*this, &s);
  const std::size_t n = in.elements();
  ooc::ooc_array<T, 1> a{rt, s, to, ooc::create, {n}};
  a.overwrite({{0}, {n}});
  examples::progress_bar bar("importing " + path_, n, sizeof(T), quiet);
  std::vector<T> part(std::min(piece, n));
  for (std::size_t first = 0; first < n; first += part.size()) {
    const std::span<T> some(part.data(), std::min(part.size(), n - first));
    in.next(some);
    std::copy(some.begin(), some.end(), a.data() + first);
    bar.step(some.size());
  }
  a.close();
}

template <class T>
checked_sum streamed(const source& x, const source& y, const ooc::store& s, std::uint64_t n) {
  stream<T> in_x(x, &s), in_y(y, &s);
  std::vector<T> part_x(std::min<std::uint64_t>(piece, n)), part_y(part_x.size());
  checked_sum result;
  for (std::uint64_t first = 0; first < n; first += part_x.size()) {
    const std::size_t count = std::min<std::uint64_t>(part_x.size(), n - first);
    in_x.next({part_x.data(), count});
    in_y.next({part_y.data(), count});
    for (std::size_t i = 0; i < count; ++i) {
      const long double product = static_cast<long double>(part_x[i]) * part_y[i];
      result.sum += product;
      result.moduli += static_cast<double>(std::abs(product));
    }
  }
  return result;
}

template void source::check<double>() const;
template void source::check<std::int32_t>() const;
template void source::import_to<double>(ooc::runtime&, const ooc::store&, const std::string&, bool) const;
template void source::import_to<std::int32_t>(ooc::runtime&, const ooc::store&, const std::string&, bool) const;
template checked_sum streamed<double>(const source&, const source&, const ooc::store&, std::uint64_t);
template checked_sum streamed<std::int32_t>(const source&, const source&, const ooc::store&, std::uint64_t);

}  // namespace inner_product_example
