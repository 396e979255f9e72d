#include "storage/collective/exchange_plan.hpp"

#include <algorithm>
#include <limits>

#include "oocarray/error.hpp"
#include "storage/layout/file_shape.hpp"
#include "storage/layout/touched_nodes.hpp"

namespace ooc::storage {
namespace {

constexpr std::uint64_t most_windows = 1 << 24;  // of a file, about

std::uint64_t window_bytes(std::span<const request> wanted, const striping& s, std::uint64_t round_bytes) {
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
  for (const request& r : wanted) {
    for (const nested_request& n : r.entries()) begin = std::min(begin, n.file_offset);
    end = std::max(end, r.file_end());
  }
  // Windows are counted from the file's begin: in a very large one they are not small.
  const std::uint64_t least = end / most_windows / chunk_size * chunk_size + chunk_size;
  const std::uint64_t most = std::max(round_bytes / wanted.size(), least);
  // Bytes that are few enough for one round are dealt out evenly.
  const std::uint64_t even = end > begin ? (end - begin) / wanted.size() : 0;
  if (even < most) return std::max(even / chunk_size * chunk_size + chunk_size, least);
  for (const std::uint64_t unit : {s.sf * s.nn, s.sf})
    if (unit <= most && unit % chunk_size == 0) return most / unit * unit;
  return most / chunk_size * chunk_size;
}

}  // namespace

// A window is what a node would hold of a file that is dealt out in stripes of one window, to so
// many nodes that none gets a second one.  So the walks over requests that skip what lies on other
// nodes serve here as well.
void exchange_plan::regions_in_window(const request& r, std::uint32_t round, std::uint64_t rank,
                                      std::vector<region>& out) const {
  const striping windows{.sn = 0, .nn = static_cast<std::uint32_t>(last_round * ranks), .sf = window};
  object_regions(r, windows, static_cast<std::uint32_t>(round * ranks + rank), out);
}

exchange_plan plan_exchange(std::span<const request> wanted, const striping& s, std::uint64_t round_bytes) {
  exchange_plan p;
  p.ranks = wanted.size();
  p.window = window_bytes(wanted, s, round_bytes);
  const std::uint64_t round = p.ranks * p.window;
  std::uint64_t end = 0;
  for (const request& r : wanted) end = std::max(end, r.file_end());
  p.last_round = end / round + 1;
  if (p.last_round > (std::uint64_t{1} << 31) / p.ranks)
    throw usage_error(errc::invalid_request, "a collective transfer that reaches byte " + std::to_string(end) +
                                                 " cannot be cut into windows of " + std::to_string(p.window) +
                                                 " bytes");
  const striping rounds{.sn = 0, .nn = static_cast<std::uint32_t>(p.last_round), .sf = round};
  std::vector<bool> touched(p.last_round);
  for (const request& r : wanted) {
    const std::vector<bool> own = touched_stripe_indexes(r, rounds);
    for (std::size_t k = 0; k < own.size(); ++k)
      if (own[k]) touched[k] = true;
  }
  for (std::uint32_t k = 0; k < p.last_round; ++k)
    if (touched[k]) p.rounds.push_back(k);
  return p;
}

}  // namespace ooc::storage
