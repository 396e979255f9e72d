// Copies of commits that are brought up to date (`ooc cp --since`).
//
// With each commit of a copy is kept which commit of which file it is a copy of, so that nothing is left out of a copy
// of something else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "copying/file_tree.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

/// What is given with commit `number` of a copy of `from`: what was given with the commit that it copies, and which it
/// is.
std::map<std::string, std::string> given_with_copy(const byte_source& from, std::uint64_t number);

/// file_tree::update() in a store.
std::unique_ptr<byte_target> update_copy(storage::store_core& core, const storage::entry& there, byte_source& from,
                                         std::uint64_t since);

}  // namespace ooc::tool
