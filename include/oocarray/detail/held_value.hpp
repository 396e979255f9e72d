// A value of a reduction in a std::vector.
//
// std::vector<bool> holds no bools: it has no data(), and of its elements several are in one byte, so that threads
// which write different ones would lose some.
#pragma once

namespace ooc::detail {

template <class Value>
struct held_value {
  Value value;
};

}  // namespace ooc::detail
