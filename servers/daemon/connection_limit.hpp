// How many connections a server may have at once.
#pragma once

namespace ooc::servers {

/// `given`, or, where that is 0, 4096.  Lets the process have as many open files as its hard limit allows, and is at
/// most half of that: the rest is for files.  A connection takes one, and up to 64 KiB of memory.
unsigned connection_limit(unsigned given);

}  // namespace ooc::servers
