// Which way blocks are mapped: what the options and OOC_MAPPING ask for, and what the kernel allows.
#pragma once

#include <memory>

#include "oocarray/runtime.hpp"
#include "runtime/blocks/block_mapping.hpp"

namespace ooc::detail {

/// Throws usage_error (errc::invalid_request) where what is asked for is not known or not to be had.
std::unique_ptr<block_mapping> make_mapping(const runtime_options& o);

}  // namespace ooc::detail
