#include "storage/chunked/packed_codec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::storage {
namespace {

struct codec {
  std::string_view name;
  chunk_filter filter;
  int least, usual, most;  ///< levels
};
constexpr std::array codecs{codec{"zstd", chunk_filter::zstd, 1, 3, 22}, codec{"lz4", chunk_filter::lz4, 1, 1, 65536},
                            codec{"gzip", chunk_filter::gzip, 1, 3, 9}};
constexpr std::string_view shuffled = "shuffle+";
constexpr std::uint64_t least_chunk = 4096, greatest_chunk = 64 << 20;

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), n);
  return why == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

std::string those_there() {
  std::string all;
  for (const codec& c : codecs)
    if (can_apply(c.filter)) all += (all.empty() ? "" : ", ") + std::string(c.name);
  return all;
}

/// "zstd:3", or "zstd".
std::optional<std::pair<codec, int>> parsed(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto c = std::ranges::find(codecs, text.substr(0, colon), &codec::name);
  if (c == codecs.end()) return std::nullopt;
  if (colon == text.npos) return std::pair(*c, c->usual);
  const auto level = number_in(text.substr(colon + 1));
  if (!level || *level < static_cast<unsigned>(c->least) || *level > static_cast<unsigned>(c->most))
    return std::nullopt;
  return std::pair(*c, static_cast<int>(*level));
}

/// With 512 KiB what it takes to hand a chunk from thread to thread is little.  Of more than some 100,000 the table
/// would be long.
std::uint64_t usual_chunk(std::uint64_t file_bytes) {
  return std::clamp<std::uint64_t>(std::bit_ceil(file_bytes >> 17), 512 << 10, 4 << 20);
}

}  // namespace

std::string codec_text(const pack_options& how, std::uint32_t element_size, std::uint64_t file_bytes) {
  const auto c = parsed(how.codec);
  if (!c || !can_apply(c->first.filter))
    throw usage_error(errc::invalid_request,
                      "codec '" + how.codec + "': this build of the library has " + those_there() +
                          ", each with a level behind a colon (zstd:1 to zstd:22, lz4:1, gzip:1 to gzip:9)");
  const std::uint64_t wanted = how.chunk != 0 ? how.chunk : usual_chunk(file_bytes);
  if (wanted < least_chunk || wanted > greatest_chunk || element_size > wanted)
    throw usage_error(errc::invalid_request, "a chunk of " + std::to_string(wanted) +
                                                 " bytes: give 4 KiB to 64 MiB, and not less than an element (" +
                                                 std::to_string(element_size) + " bytes)");
  const std::uint64_t chunk = std::min(wanted, file_bytes);  // a small array is one, and no longer than that
  return (how.shuffle && element_size > 1 ? std::string(shuffled) : "") + std::string(c->first.name) + ":" +
         std::to_string(c->second) + "/" + std::to_string(chunk / element_size * element_size);
}

chunked_dataset packed_dataset(const entry& e) {
  std::string_view text = e.codec;
  const bool shuffle = text.starts_with(shuffled);
  if (shuffle) text.remove_prefix(shuffled.size());
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto c = parsed(text.substr(0, slash));
  const auto chunk = number_in(text.substr(std::min(slash + 1, text.size())));
  const std::uint32_t element = std::max<std::uint32_t>(1, e.array.element_size);
  if (!c || !can_undo(c->first.filter) || !chunk || *chunk == 0 || *chunk > greatest_chunk || *chunk % element != 0 ||
      e.size < element)
    refuse(errc::type_mismatch, e.path,
           "it is packed by '" + e.codec + "', which this build of the library cannot unpack; it has " + those_there());
  file_chunks f;
  f.dataset = e.path;
  f.extents = {*chunk / element};
  if (shuffle) f.filters.push_back(chunk_filter::shuffle);
  f.filters.push_back(c->first.filter);
  f.packing.resize(f.filters.size());
  f.packing.back().level = c->second;
  f.fill = e.fill;
  return {e.path, chunk_grid({e.size / element}, {f.extents.front()}, element), std::move(f), element};
}

}  // namespace ooc::storage
