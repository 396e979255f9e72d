// How many connections a server may have at once.
#pragma once

namespace ooc::servers {

/// `given`; where that is 0, 4096, or half of the files that the process may have open, if that is less: the rest is
/// for stripe objects.  Lets the process have as many as its hard limit allows.  A connection takes one, and up to 64
/// KiB of memory.
unsigned connection_limit(unsigned given);

}  // namespace ooc::servers
