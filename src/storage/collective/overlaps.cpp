#include "storage/collective/overlaps.hpp"

#include <algorithm>
#include <vector>

namespace ooc::storage {
namespace {

struct owned_region {
  std::uint64_t begin, end, rank;
};

}  // namespace

std::optional<shared_bytes> find_overlap(const exchange_plan& plan, std::span<const request> wanted,
                                         std::uint64_t rank) {
  std::vector<region> of_one;
  std::vector<owned_region> all;
  for (const std::uint32_t round : plan.rounds) {
    all.clear();
    for (std::uint64_t r = 0; r < wanted.size(); ++r) {
      plan.regions_in_window(wanted[r], round, rank, of_one);
      const auto sorted = static_cast<std::ptrdiff_t>(all.size());
      for (const region& p : of_one) all.push_back({p.node_offset, p.node_end(), r});
      std::inplace_merge(all.begin(), all.begin() + sorted, all.end(),
                         [](const owned_region& a, const owned_region& b) { return a.begin < b.begin; });
    }
    for (std::size_t i = 1; i < all.size(); ++i) {
      const owned_region &a = all[i - 1], &b = all[i];
      if (b.begin < a.end)
        return shared_bytes{plan.window_begin(round, rank) + b.begin, std::min(a.end, b.end) - b.begin,
                            std::min(a.rank, b.rank), std::max(a.rank, b.rank)};
    }
  }
  return std::nullopt;
}

}  // namespace ooc::storage
