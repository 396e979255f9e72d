// Attributes of an HDF5 dataset as texts, and back.  hdf5_file.hpp says what becomes of which.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ooc::tool::hdf5 {

using texts = std::map<std::string, std::string>;

/// `name`: of the dataset.  What cannot be a text is told in `left_out`.
texts read_attributes(hid_t dataset, const std::string& name, std::vector<std::string>& left_out);
/// The same of any object, without dimensions.
texts read_plain_attributes(hid_t object, std::vector<std::string>& left_out);
/// Whether the only element is that of a dataset without dimensions, whose `dimensions` are "[]".
bool is_scalar(const texts& attributes, const std::vector<std::uint64_t>& extents);
/// `dimensions` become scales, where this dataset is one, or one of that name can be made beside it, and else labels.
/// `what` begins the messages.
void write_attributes(hid_t file, hid_t dataset, const std::string& name, const texts& attributes,
                      const std::vector<std::uint64_t>& extents, const std::string& what);
void write_plain_attributes(hid_t object, const texts& attributes, const std::string& what);

}  // namespace ooc::tool::hdf5
