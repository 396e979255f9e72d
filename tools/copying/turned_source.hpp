// A .npy file in Fortran's order: its array is stored with the shape and the elements that NumPy shows, transposed out
// of core by the library.
#pragma once

#include <functional>
#include <string>

#include "copying/array_source.hpp"
#include "storage/layout/npy.hpp"

namespace ooc::tool {

class turned_source : public array_source {
 public:
  /// `verify_first`: reads all of it once, and throws where a checksum says that it is damaged; empty: it has none.
  turned_source(std::string file, storage::npy_header header, std::function<void()> verify_first);
  bool writes_array() const override { return true; }
  void check(const box& part) override;
  void copy(const box& part, array_target& to, std::uint64_t buffer,
            const std::function<void(std::uint64_t)>& advance) override;

 private:
  std::string file_;
  storage::npy_header header_;
  std::function<void()> verify_first_;
};

}  // namespace ooc::tool
