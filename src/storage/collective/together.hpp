// process_group::together(), for results of up to so many bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "oocarray/process_group.hpp"

namespace ooc::storage {

/// Of a rank's result: with what its message adds, one operation carries it, and protobuf writes it.
inline constexpr std::size_t most_told = std::numeric_limits<int>::max() - 4096;

/// A result of more than `most` bytes is a failure of its rank: usage_error.
std::vector<process_group::bytes> together(process_group& group, std::string_view call,
                                           const std::function<process_group::bytes()>& f,
                                           std::size_t most = most_told);

}  // namespace ooc::storage
