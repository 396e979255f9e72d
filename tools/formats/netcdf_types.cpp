#include "formats/netcdf_types.hpp"

#include <set>

#include "oocarray/error.hpp"
#include "storage/layout/element_description.hpp"

namespace ooc::tool {

void fit_netcdf(const std::string& file, hdf5_dataset& d) {
  static const std::set<std::string> numbers{"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"};
  if (numbers.contains(d.array.element_type)) return;
  if (d.array.element_type == "b1") {
    d.array.element_type = "i1";
    d.attributes[storage::dtype_attribute] = "bool";
    return;
  }
  const std::string type = d.description.empty() ? d.array.element_type : d.description;
  throw usage_error(errc::type_mismatch, "'" + file + "': NetCDF-4 has no elements of the type " + type +
                                             "; export it to a name that ends in .h5, or convert it to a number that "
                                             "it has (i1..i8 u1..u8 f4 f8)");
}

}  // namespace ooc::tool
