// Whether an element can be read without a fault: for who then need not see to it that faults come to the library.
#pragma once

#include <cstddef>

namespace ooc::detail {

class array_core;

/// As long as nobody evicts it.  The array is open.
bool is_mapped(const array_core& a, const std::byte* element) noexcept;

}  // namespace ooc::detail
