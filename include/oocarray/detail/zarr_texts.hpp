// Texts of Zarr, whose writers are mostly in Python (zarr.hpp).
//
// Threads: any.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ooc::detail::zarr {

/// All of a file, as JSON: the bare NaN, Infinity and -Infinity of Python's `json` become the texts by which Zarr has
/// such numbers.
inline std::string json_text(std::istream& file) {
  constexpr std::array<std::string_view, 3> words = {"NaN", "Infinity", "-Infinity"};
  const std::string said{std::istreambuf_iterator<char>(file), {}};
  std::string text;
  bool quoted = false;
  for (std::size_t i = 0; i < said.size();) {
    const std::string_view rest = std::string_view(said).substr(i);
    const auto* const word =
        quoted ? words.end() : std::ranges::find_if(words, [&](auto w) { return rest.starts_with(w); });
    if (word != words.end()) {
      text.append("\"").append(*word).append("\"");
      i += word->size();
      continue;
    }
    if (quoted && said[i] == '\\')
      text += said[i++];
    else if (said[i] == '"')
      quoted = !quoted;
    if (i < said.size()) text += said[i++];
  }
  return text;
}

/// Nothing for what is not in base 64.
inline std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::byte> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::size_t digit = digits.find(c);
    if (digit == digits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> count & 0xff));
  }
  return bytes;
}

}  // namespace ooc::detail::zarr
