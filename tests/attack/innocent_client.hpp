// The client that does nothing wrong beside others that do: it opens its file and reads 4 KiB of
// it, over and over, and measures how long that takes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "attack/round.hpp"
#include "oocarray/store.hpp"

namespace ooc::attack {

struct slowest {
  std::uint64_t read_us = 0, lookup_us = 0;
};

inline constexpr std::size_t innocent_bytes = 1 << 20;
/// The contents of its file "innocent" holds.
inline std::byte innocent_byte(std::size_t i) { return static_cast<std::byte>(i * 2654435761u >> 13); }

void make_innocent_file(const store& s);

/// Reads the file that is there.  Throws a finding where the bytes are wrong.
slowest read_innocently(round& r, const store& s, std::chrono::steady_clock::time_point until);

/// Reads the file while nothing happens (`calm`) and then during the attack.  Throws a finding
/// where a read of the attack took more than 1 s, or a look-up more than 0.5 s, beyond three times
/// what the slowest took before.
void be_innocent(round& r, const store& s, std::chrono::milliseconds calm, std::chrono::milliseconds attack);

}  // namespace ooc::attack
