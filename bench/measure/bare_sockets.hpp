// The bytes that sockets alone carry between two processes of this machine: the limit of a served store.
//
// Tight loops over TCP on loopback, with TCP_NODELAY: nothing is looked at, copied or checked, but
// where the function says so.
//
// The other process is forked: the caller must have one thread.  Failures throw std::system_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "measure/shaped_link.hpp"

namespace bench::bare {

inline constexpr std::size_t message = 1 << 20;  // bytes

/// Which way the data go, seen from the process that measures.
enum class way { in, out };

/// Who moves the bytes on each side: a thread for each connection, in blocking calls, or one thread
/// for all, which waits for whichever is ready.
enum class movers { thread_each, one_thread };

/// Seconds until `memory` has been filled by the other process, or has arrived there, `times`
/// times: in messages of 1 MiB, message m by connection m mod `connections`.  The other side has
/// one message's memory for each connection.  Outwards the other side says when it has everything.
/// With `link` this process is on its client's host and the other one on the server's.
double carry_seconds(way w, movers who, unsigned connections, std::span<std::byte> memory, unsigned times,
                     const shaped_link* link = nullptr);

/// What any store with checksums must do with writes: carry_seconds() outwards, a thread for each
/// connection, where the sender takes the checksum of every 4 KiB, and the other side takes it
/// again and writes each message to the page cache of a file in `folder`, one for each connection,
/// which was written before.
double carry_to_files_seconds(unsigned connections, std::span<std::byte> memory, unsigned times,
                              const std::filesystem::path& folder);

/// Seconds for one exchange of `bytes` each way, the mean of `count`, on one connection.
double ping_pong_seconds(std::size_t bytes, unsigned count);

}  // namespace bench::bare
