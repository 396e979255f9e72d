// Lines on standard error for whoever waits: what for, and until when.
//
// They go through the logger "oocarray" where the program has registered one, else to standard error,
// from a thread of their own: the caller may serve a page fault of a thread that holds the lock of a
// stream.  A line that cannot be taken at once (64 are waiting) replaces the oldest.
#pragma once

#include <chrono>
#include <string>

namespace ooc::storage {

/// How long something may take before a line says that it is waited for.
inline constexpr std::chrono::seconds notice_after{2};

/// Never throws and never waits for the stream.  Not for fault handlers.
void notice(const std::string& line) noexcept;
/// A line of which there may be one for each server of a store: after 20 in 10 s the others are left out, which a
/// further line says.  Thread-safe, as the other.
void notice_of_many(const std::string& line) noexcept;

/// "until 14:03:27 (30 s)": when, on the clock of the wall, and how long the whole wait then was.
std::string until_text(std::chrono::steady_clock::time_point end, std::chrono::steady_clock::duration whole);

/// "30 s", "1.5 s".
std::string seconds_text(std::chrono::steady_clock::duration t);

}  // namespace ooc::storage
