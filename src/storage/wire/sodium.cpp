#include "storage/wire/sodium.hpp"

#include <sodium.h>

#include <cerrno>

#include "oocarray/error.hpp"

namespace ooc::wire {

void ready_sodium() {
  static const bool ready = ::sodium_init() >= 0;
  if (!ready)
    throw io_error::in_full({ENOSYS, std::generic_category()},
                            "libsodium cannot be used: this system has no source of random numbers");
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  std::string text(bytes.size() * 2 + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  text.pop_back();
  return text;
}

bool from_hex(std::string_view text, std::span<std::uint8_t> out) {
  std::size_t written = 0;
  return text.size() == 2 * out.size() &&
         ::sodium_hex2bin(out.data(), out.size(), text.data(), text.size(), nullptr, &written, nullptr) == 0 &&
         written == out.size();
}

}  // namespace ooc::wire
