#include "storage/base/page.hpp"

#include <unistd.h>

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace ooc::detail {

namespace {

constexpr const char* setting = "OOC_PAGE_BYTES";
constexpr std::uint64_t most = 1 << 20;

/// What is set; nothing where it cannot be.
std::optional<std::uint64_t> wanted(const char* text) noexcept {
  std::uint64_t bytes = 0;
  const char* const end = text + std::strlen(text);
  const auto [last, why] = std::from_chars(text, end, bytes);
  const bool possible = why == std::errc{} && last == end && std::has_single_bit(bytes);
  return possible && bytes >= kernel_page_bytes() && bytes <= most ? std::optional(bytes) : std::nullopt;
}

}  // namespace

std::uint64_t kernel_page_bytes() noexcept { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

std::uint64_t reckoned_page_bytes() noexcept {
  const char* const text = std::getenv(setting);
  return text ? wanted(text).value_or(kernel_page_bytes()) : kernel_page_bytes();
}

std::string wrong_page_setting() {
  const char* const text = std::getenv(setting);
  if (!text || wanted(text)) return {};
  return std::string(setting) + "='" + text + "': a power of two from " + std::to_string(kernel_page_bytes()) + " to " +
         std::to_string(most) + " is expected; pages of this machine have the first";
}

}  // namespace ooc::detail
