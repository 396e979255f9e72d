// The walk over a nested request, skipping what lies on other nodes.
#include "storage/layout/regions.hpp"

#include <algorithm>
#include <limits>

namespace ooc::storage {
namespace {

constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

class walker {
 public:
  walker(const striping& s, std::uint32_t stripe_index, std::uint64_t steps, std::vector<region>& out)
      : s_(s), stripe_index_(stripe_index), steps_(steps), out_(out) {}

  void entry(const nested_request& n) {
    // reach_[l]: bytes from the first to one past the last byte of one repetition below level l.
    reach_[n.depth] = n.run;
    for (std::uint32_t l = n.depth; l-- > 0;)
      reach_[l] = reach_[l + 1] + (n.levels[l].count - 1) * n.levels[l].file_step;
    nest(n, 0, n.file_offset, n.memory_offset);
  }

  bool sorted() const noexcept { return sorted_; }
  bool out_of_steps() const noexcept { return out_of_steps_; }

 private:
  bool step() noexcept {
    if (steps_ == 0) {
      out_of_steps_ = true;
      return false;
    }
    --steps_;
    return true;
  }

  // The first file offset >= o that lies on this node.
  std::uint64_t next_here(std::uint64_t o) const noexcept {
    const std::uint64_t stripe = o / s_.sf;
    const std::uint64_t stripe_index = stripe % s_.nn;
    if (stripe_index == stripe_index_) return o;
    const std::uint64_t next = stripe + (stripe_index_ + s_.nn - stripe_index) % s_.nn;
    return next > nowhere / s_.sf ? nowhere : next * s_.sf;
  }

  void nest(const nested_request& n, std::uint32_t level, std::uint64_t file, std::uint64_t memory) {
    if (level == n.depth) return run(file, memory, n.run);
    const stride_level& l = n.levels[level];
    for (std::uint64_t i = 0; i < l.count;) {
      const std::uint64_t at = file + i * l.file_step;
      const std::uint64_t here = next_here(at);
      if (here == at && level + 1 == n.depth) {
        // Short runs: as many as the stripe holds whole, without looking for the stripe of each.
        const std::uint64_t begin = i;
        std::uint64_t node = s_.node_offset(at), to = memory + i * l.memory_step;
        const std::uint64_t end = node + s_.sf - at % s_.sf;
        const std::uint64_t stop = i + std::min(l.count - i, steps_);
        for (; i < stop && node + n.run <= end; ++i) {
          found(node, to, n.run);
          node += l.file_step;
          to += l.memory_step;
        }
        steps_ -= i - begin;
        if (i != begin) continue;
      }
      if (!step()) return;
      if (here < at + reach_[level + 1]) {
        nest(n, level + 1, at, memory + i * l.memory_step);
        ++i;
        continue;
      }
      // Nothing of this repetition is here: go to the first that reaches past `here`.
      if (l.file_step == 0 || here == nowhere) return;
      const std::uint64_t skip = (here - (at + reach_[level + 1])) / l.file_step + 1;
      if (skip >= l.count - i) return;
      i += skip;
    }
  }

  void run(std::uint64_t file, std::uint64_t memory, std::uint64_t length) {
    if (s_.nn == 1) return found(file, memory, length);
    const std::uint64_t end = file + length;
    for (std::uint64_t o = next_here(file); o < end && step();) {
      const std::uint64_t rest = s_.sf - o % s_.sf;
      const std::uint64_t part = std::min(rest, end - o);
      found(s_.node_offset(o), memory + (o - file), part);
      if (part < rest) return;
      o = next_here(o + part);
    }
  }

  void found(std::uint64_t node, std::uint64_t memory, std::uint64_t length) {
    if (!out_.empty()) {
      region& last = out_.back();
      if (last.node_end() == node && last.memory_offset + last.length == memory) {
        last.length += length;
        return;
      }
      if (node < last.node_offset) sorted_ = false;
    }
    out_.push_back({node, memory, length});
  }

  const striping& s_;
  const std::uint64_t stripe_index_;
  std::uint64_t steps_;  // that are left
  std::vector<region>& out_;
  std::uint64_t reach_[nested_request::max_levels + 1] = {};
  bool sorted_ = true;
  bool out_of_steps_ = false;
};

}  // namespace

void object_regions(const request& r, const striping& s, std::uint32_t stripe_index, std::vector<region>& out) {
  object_regions_within(r, s, stripe_index, std::numeric_limits<std::uint64_t>::max(), out);
}

bool object_regions_within(const request& r, const striping& s, std::uint32_t stripe_index, std::uint64_t most,
                           std::vector<region>& out) {
  out.clear();
  walker w(s, stripe_index, most, out);
  for (const nested_request& n : r.entries()) {
    w.entry(n);
    if (!w.out_of_steps()) continue;
    out.clear();
    return false;
  }
  if (w.sorted()) return true;

  std::stable_sort(out.begin(), out.end(),
                   [](const region& a, const region& b) { return a.node_offset < b.node_offset; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < out.size(); ++i) {
    region& last = out[kept];
    if (last.node_end() == out[i].node_offset && last.memory_offset + last.length == out[i].memory_offset)
      last.length += out[i].length;
    else
      out[++kept] = out[i];
  }
  out.resize(kept + 1);
  return true;
}

void cut(std::vector<region>& regions, byte_range r) {
  std::uint64_t skip = r.first;
  std::uint64_t left = r.count ? r.count : ~std::uint64_t{0};
  std::size_t kept = 0;
  for (region p : regions) {
    const std::uint64_t off = std::min(skip, p.length);
    skip -= off;
    p = {p.node_offset + off, p.memory_offset + off, std::min(p.length - off, left)};
    left -= p.length;
    if (p.length != 0) regions[kept++] = p;
  }
  regions.resize(kept);
}

bool overlap(std::span<const region> sorted) noexcept {
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i].node_offset < sorted[i - 1].node_end()) return true;
  return false;
}

std::uint64_t node_runs(std::span<const region> sorted) noexcept {
  std::uint64_t n = sorted.empty() ? 0 : 1;
  for (std::size_t i = 1; i < sorted.size(); ++i) n += sorted[i].node_offset != sorted[i - 1].node_end();
  return n;
}

}  // namespace ooc::storage
