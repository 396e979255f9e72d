// The striping of a file that a command makes: --sf, --nn and --sn, or chosen from its shape.
#pragma once

#include "base/command.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::tool {

/// Adds the three options to a command.
void add_striping_options(command_line& line);

/// The striping that the options give; the stripe size is otherwise chosen such that blocks and tiles of the array
/// fall on all nodes alike.
striping target_striping(const command_line& line, const storage::array_description& array, std::uint64_t file_bytes,
                         std::uint32_t store_nodes);

}  // namespace ooc::tool
