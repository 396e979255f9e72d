#include "runtime/geometry/conflicts.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>

namespace ooc::detail {
namespace {

constexpr std::size_t most_described = 8;

/// Calls f(common run) for the parts that two ascending lists share.
template <class F>
void intersect(const std::vector<byte_run>& a, const std::vector<byte_run>& b, F&& f) {
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const std::uint64_t from = std::max(a[i].offset, b[k].offset);
    const std::uint64_t a_end = a[i].offset + a[i].length;
    const std::uint64_t b_end = b[k].offset + b[k].length;
    if (from < std::min(a_end, b_end)) f(byte_run{from, std::min(a_end, b_end) - from});
    a_end < b_end ? ++i : ++k;
  }
}

/// The smallest box around elements that are added run by run.
class bounding_box {
 public:
  explicit bounding_box(const array_geometry& g) : g_(g) {}

  void add(byte_run r) {
    const std::uint64_t block = g_.block_bytes();
    while (r.length > 0) {
      const block_index b = r.offset / block;
      const std::uint64_t n = std::min(r.length, (b + 1) * block - r.offset);
      add_within(b, r.offset - b * block, n);
      r.offset += n;
      r.length -= n;
    }
  }
  const std::optional<index_box>& get() const noexcept { return box_; }

 private:
  void add_within(block_index b, std::uint64_t from, std::uint64_t n) {
    const coordinates first = g_.element_at(b, from);
    const coordinates last = g_.element_at(b, from + n - 1);
    const index_box whole = g_.bounds(b);
    bool differed = false;
    for (std::size_t k = 0; k < g_.rank(); ++k) {
      const std::uint64_t lower = differed ? whole.lower[k] : first[k];
      const std::uint64_t upper = differed ? whole.upper[k] : last[k] + 1;
      differed = differed || first[k] != last[k];
      sides_.lower[k] = box_ ? std::min(sides_.lower[k], lower) : lower;
      sides_.upper[k] = box_ ? std::max(sides_.upper[k], upper) : upper;
    }
    box_ = sides_;
  }

  const array_geometry& g_;
  index_box sides_;
  std::optional<index_box> box_;
};

run_set bytes_of(const std::vector<block_range>& blocks, std::uint64_t block_bytes) {
  run_set runs;
  for (const block_range& r : blocks) runs.add({r.first * block_bytes, (r.last - r.first) * block_bytes});
  return runs;
}

struct two_sets {
  const run_set &first, &second;
};

}  // namespace

std::vector<conflict> find_conflicts(const array_geometry& g, const std::vector<accesses>& by_rank) {
  std::vector<conflict> found;
  for (std::size_t r = 0; r < by_rank.size(); ++r)
    for (std::size_t w = 0; w < by_rank.size(); ++w) {
      if (r == w) continue;
      const accesses &first = by_rank[r], &second = by_rank[w];
      const auto look = [&](conflict::kind what, std::initializer_list<two_sets> pairs) {
        bounding_box box(g);
        for (const auto& [a, b] : pairs) intersect(a.runs(), b.runs(), [&](const byte_run& run) { box.add(run); });
        if (box.get()) found.push_back({what, static_cast<int>(r), static_cast<int>(w), *box.get()});
      };
      if (r < w)  // what both had told before was compared then
        look(conflict::kind::both_wrote, {{first.written, second.written},
                                          {first.written, second.shown_to_nobody},
                                          {first.shown_to_nobody, second.written}});
      look(conflict::kind::read_element, {{first.read, second.written}, {first.read, second.shown_to_nobody}});
      const run_set blocks = bytes_of(first.read_blocks, g.block_bytes());
      look(conflict::kind::read_block, {{blocks, second.written}, {blocks, second.shown_to_nobody}});
    }
  return found;
}

std::string describe(const std::vector<conflict>& all, std::size_t rank_of_array) {
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), most_described); ++i) {
    const conflict& c = all[i];
    const std::string first = std::to_string(c.first), second = std::to_string(c.second);
    if (i > 0) text += "; ";
    switch (c.what) {
      case conflict::kind::both_wrote: text += "ranks " + first + " and " + second + " both wrote elements of"; break;
      case conflict::kind::read_element:
        text += "rank " + first + " read through at() what rank " + second + " wrote of";
        break;
      case conflict::kind::read_block:
        text += "rank " + first + " read blocks in which rank " + second + " wrote, in";
        break;
    }
    const std::span<const std::uint64_t> lower(c.box.lower.data(), rank_of_array);
    const std::span<const std::uint64_t> upper(c.box.upper.data(), rank_of_array);
    text += " the box " + to_string(lower) + " to " + to_string(upper);
  }
  if (all.size() > most_described) text += "; and " + std::to_string(all.size() - most_described) + " more";
  return text;
}

}  // namespace ooc::detail
