// The one place that readies libsodium.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ooc::wire {

/// Must have been called before any crypto_* function; later calls cost nothing.  Throws io_error
/// where the system has no source of random numbers.
void ready_sodium();

/// Lower-case hexadecimal digits, two a byte.
std::string to_hex(std::span<const std::uint8_t> bytes);
/// False where `text` is not exactly 2 * out.size() hexadecimal digits.
bool from_hex(std::string_view text, std::span<std::uint8_t> out);

}  // namespace ooc::wire
