#include "runtime/policy/segment_history.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace ooc::detail {

void segment_history::touched(block_past& p, bool inactive) noexcept {
  if (inactive) aged_.came_back();
  if (std::exchange(p.left, false)) left_.came_back();
}

bool segment_history::mapped_whole(std::uint64_t bytes, std::uint64_t ran_ns, bool in_grains) noexcept {
  const bool waste = waste_.mapped(bytes, ran_ns);
  if (in_grains) choice_.mapped_whole(bytes, ran_ns);
  return waste;
}

// Where all arrays fit in memory, blocks come once, and sooner whole.
bool segment_history::comes_in_grains(block_index b, bool all_fits) noexcept {
  switch (streams_.pattern()) {
    case access_pattern::sequential: return false;
    case access_pattern::random: return true;
    default: return !all_fits && (is_no_sweep() || !streams_.expects(b)) && choice_.in_grains();
  }
}

segment_history::sweep segment_history::follow(block_index b, block_index blocks, unsigned limit, const ahead_group& g,
                                               std::vector<block_index>& wanted) {
  if (is_no_sweep()) streams_.forget();
  const std::size_t before = wanted.size();
  // What is read ahead takes the place of what the next pass would find in memory.
  constexpr unsigned least = 4;  // or the disk waits
  if (repeated_.repeats() && limit > least) limit = std::max(least, limit / 2);
  const std::int64_t step = streams_.touched(b, blocks, limit, g, wanted);
  if (yield_.is_poor() && streams_.run() < policy_numbers::now.sure_run) wanted.resize(before);
  order_.add(step, 1);
  return {.step = step};
}

// By bytes: a walk down a column goes on by the same number of bytes, which need not be whole grains.  One that goes
// from grain to grain is not followed into other blocks, as these are better loaded whole.
segment_history::sweep segment_history::follow_grains(std::uint64_t place, std::uint64_t bytes, std::uint64_t grain,
                                                      unsigned limit, bool was_out, std::vector<block_index>& wanted) {
  const std::size_t before = wanted.size();
  limit = std::min(limit, yield_.is_poor() ? policy_numbers::now.grains_ahead_poor : policy_numbers::now.grains_ahead);
  sweep s;
  s.step = streams_.touched(place, bytes, limit, {}, wanted, refill::by_halves, was_out);
  order_.add(s.step, static_cast<std::int64_t>(grain));
  const auto distance = static_cast<std::uint64_t>(std::abs(s.step));
  s.walks = distance > grain;
  s.runs = s.step != 0 && !s.walks && streams_.run() >= policy_numbers::now.run_of_grains;
  if (s.walks) left_.touched(place / grain);
  for (std::size_t i = before; i < wanted.size(); ++i) wanted[i] /= grain;
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (!s.walks) wanted.resize(std::min<std::size_t>(wanted.size(), policy_numbers::now.run_of_grains));
  return s;
}

// Only where what is swept is not so much larger than the memory that what could stay would be little.
std::optional<block_index> segment_history::not_wanted_soon(block_index b, block_index blocks, block_index worth_it,
                                                            std::uint64_t ran_ns) {
  if (blocks > repeated_sweep::most_blocks || b >= blocks) return {};
  repeated_.came_in(b, blocks, worth_it, ran_ns);
  const block_index left = std::exchange(came_lately_[came_++ % came_lately_.size()], b);
  if (!repeated_.repeats() || std::find(came_lately_.begin(), came_lately_.end(), left) != came_lately_.end())
    return {};
  return left;
}

std::optional<block_index> segment_history::next_left() noexcept {
  if (!left_.due()) return {};
  return left_.take();
}

}  // namespace ooc::detail
