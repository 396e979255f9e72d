#include "storage/client/split_request.hpp"

#include <algorithm>
#include <utility>

#include "storage/wire/messages.hpp"

namespace ooc::storage {
namespace {

std::pair<nested_request, nested_request> halves(const nested_request& n, const striping& s) {
  nested_request first = n, second = n;
  if (n.depth == 0) {
    // Cut between stripes, which is between regions.  It has very many of them.
    first.run = (n.file_offset + n.run / 2) / s.sf * s.sf - n.file_offset;
    second.run = n.run - first.run;
    second.file_offset += first.run;
    second.memory_offset += first.run;
    return {first, second};
  }
  const stride_level& outer = n.levels[0];
  first.levels[0].count = outer.count / 2;
  second.levels[0].count = outer.count - outer.count / 2;
  second.file_offset += outer.count / 2 * outer.file_step;
  second.memory_offset += outer.count / 2 * outer.memory_step;
  return {first, second};
}

std::pair<request, request> halves(const request& r, const striping& s) {
  const auto all = r.entries();
  request first, second;
  if (all.size() == 1) {
    const auto [a, b] = halves(all[0], s);
    first.add(a);
    second.add(b);
  }
  for (std::size_t i = 0; i < all.size() && all.size() > 1; ++i) (i < all.size() / 2 ? first : second).add(all[i]);
  return {std::move(first), std::move(second)};
}

void split(request_ptr r, const striping& s, std::uint32_t stripe_index, std::vector<split_request>& out) {
  std::vector<region> regions;
  if (r->entries().size() <= wire::max_entries &&
      object_regions_within(*r, s, stripe_index, wire::max_steps, regions)) {
    out.push_back({std::move(r), std::move(regions)});
    return;
  }
  regions = {};
  auto [first, second] = halves(*r, s);
  split(std::make_shared<const request>(std::move(first)), s, stripe_index, out);
  split(std::make_shared<const request>(std::move(second)), s, stripe_index, out);
}

}  // namespace

std::vector<split_request> split_requests(request_ptr r, const striping& s, std::uint32_t stripe_index) {
  std::vector<split_request> all;
  split(std::move(r), s, stripe_index, all);
  // One goes in any case: the server has a say in requests without regions too.
  const auto empty = [](const split_request& some) { return some.regions.empty(); };
  if (std::all_of(all.begin(), all.end(), empty))
    all.erase(all.begin() + 1, all.end());
  else
    std::erase_if(all, empty);
  return all;
}

bool overlap(const std::vector<split_request>& all) {
  std::vector<region> together;
  for (const split_request& some : all) together.insert(together.end(), some.regions.begin(), some.regions.end());
  std::sort(together.begin(), together.end(),
            [](const region& a, const region& b) { return a.node_offset < b.node_offset; });
  return overlap(together);
}

}  // namespace ooc::storage
