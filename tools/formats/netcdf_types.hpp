// Types that have no place in the data model of NetCDF-4, in a file whose name ends in .nc or .nc4.
#pragma once

#include "formats/hdf5_file.hpp"

namespace ooc::tool {

/// Makes `d` a variable that every program of NetCDF-4 reads: booleans become bytes with the attribute dtype = "bool",
/// as xarray writes them.  Throws usage_error (errc::type_mismatch) that names the type and the remedy for what has no
/// place there: programs would leave the variable out, or end.
void fit_netcdf(const std::string& file, hdf5_dataset& d);

}  // namespace ooc::tool
