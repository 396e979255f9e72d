// The name under which clang knows the mutex of the pager.
//
// The mutex itself is in resident_set.  Clang's analysis tells mutexes apart by the expressions that
// name them, and the parts of the pager come to this one by many; frames and segments, whose fields it
// guards, do not know it at all.  All of them say `pager_mutex`.
#pragma once

#include "storage/base/mutex.hpp"

namespace ooc::detail {

class OOC_CAPABILITY("mutex") pager_mutex_name {};
inline constexpr pager_mutex_name pager_mutex{};

}  // namespace ooc::detail
