// A .npy file in Fortran's order: its array is stored with the shape and the elements that NumPy shows, transposed out
// of core by the library.
#pragma once

#include <string>

#include "copying/array_source.hpp"
#include "storage/layout/npy.hpp"

namespace ooc::tool {

class turned_source : public array_source {
 public:
  turned_source(std::string file, storage::npy_header header);
  bool writes_array() const override { return true; }
  void copy(const box& part, array_target& to, std::uint64_t buffer,
            const std::function<void(std::uint64_t)>& advance) override;

 private:
  std::string file_;
  storage::npy_header header_;
};

}  // namespace ooc::tool
