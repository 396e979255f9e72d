// Which way blocks are mapped: what the options and OOC_MAPPING ask for, and what the kernel allows.
#pragma once

#include <memory>
#include <string>

#include "oocarray/runtime.hpp"
#include "runtime/blocks/resident_set.hpp"

namespace ooc::detail {

/// Throws usage_error (errc::invalid_request) where what is asked for is not known or not to be had.
block_mappings make_mappings(const runtime_options& o);

/// The mapping that a runtime made now, without options, would take, and what else it could: one line for
/// `ooc info`.  Throws as make_mappings() does for OOC_MAPPING.
std::string describe_mapping();

}  // namespace ooc::detail
