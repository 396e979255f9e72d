// Element types of HDF5 and ours, and how libhdf5's handles and errors are held.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <utility>

namespace ooc::tool::hdf5 {

/// Closes what libhdf5 has opened.
class handle {
 public:
  handle() = default;
  handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  handle(handle&& o) noexcept : id_(std::exchange(o.id_, -1)), close_(o.close_) {}
  handle& operator=(handle&& o) noexcept {
    std::swap(id_, o.id_);
    std::swap(close_, o.close_);
    return *this;
  }
  ~handle() { reset(); }
  herr_t reset() { return id_ >= 0 ? close_(std::exchange(id_, -1)) : 0; }
  operator hid_t() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// libhdf5 keeps its messages to itself; they come out of last_error().  For each thread that calls
/// it.
void be_quiet();
/// The last error of libhdf5, in the words of its innermost function.
std::string last_error();

struct element_type {
  std::string name;              ///< as in element_type.hpp
  std::uint32_t size = 0;        ///< bytes
  handle type;                   ///< as the elements lie in memory
  std::string description = {};  ///< where the name does not say it, see element_description.hpp
};

/// The elements of a dataset or an attribute.  Throws usage_error (errc::type_mismatch) that begins
/// with `what` for those that we have no name for.
element_type element_of(hid_t type, const std::string& what);
/// The type that our elements have in a file, which is also that in memory.  Throws the same.
element_type element_named(const std::string& name, std::uint32_t size, const std::string& what);
/// x86's long double, as h5py writes it.
bool is_long_double(hid_t type);

}  // namespace ooc::tool::hdf5
