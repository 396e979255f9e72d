#include "runtime/policy/read_ahead.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace ooc::detail {

void read_ahead::forget() noexcept {
  streams_.fill({});
  latest_ = nullptr;
  recent_.fill(-1);
}

// The block after `from`, or -1 where the sweep ends.
std::int64_t read_ahead::step(const stream& s, std::int64_t from, std::int64_t blocks,
                              std::int64_t& line_start) const noexcept {
  const std::int64_t next = from + s.stride;
  if (next >= 0 && next < blocks) return next;
  if (std::abs(s.stride) == 1) return -1;
  const std::int64_t outer = outer_of(s);
  std::int64_t start = line_start + outer;
  if (s.staggered) {
    const std::int64_t length = std::abs(s.stride), first = s.stride > 0 ? 0 : blocks - length;
    if (start < first) start += length;
    if (start >= first + length) start -= length;
  }
  if (start < 0 || start >= blocks || std::abs(outer) >= std::abs(s.stride)) return -1;
  line_start = start;
  return start;
}

// The stream that `b` continues, advanced to it.  A sweep may skip a few blocks that were resident.
read_ahead::stream* read_ahead::match(std::int64_t b, std::int64_t blocks) noexcept {
  for (stream& s : streams_) {
    if (s.last >= blocks) s = {};  // the segment has become shorter
    if (s.last < 0) continue;
    const std::int64_t reach = reach_of(s);
    const std::int64_t distance = b - s.last, steps = distance / s.stride;
    if (distance % s.stride == 0 && steps >= 1 && steps <= reach) {
      advance(s, b, steps);
      return &s;
    }
    // Beyond the end of the line that it is on.
    const std::int64_t in_line = s.stride > 0 ? (blocks - 1 - s.last) / s.stride : s.last / -s.stride;
    std::int64_t at = s.last + in_line * s.stride;
    std::int64_t line = s.line_start;
    for (std::int64_t i = in_line + 1; i <= reach; ++i) {
      at = step(s, at, blocks, line);
      if (at < 0) break;
      if (at != b) continue;
      s.outer = outer_of(s);
      s.line_start = line;
      advance(s, b, i);
      return &s;
    }
  }
  return nullptr;
}

void read_ahead::advance(stream& s, std::int64_t b, std::int64_t steps) noexcept {
  s.last = b;
  s.asked -= static_cast<unsigned>(std::min<std::int64_t>(s.asked, steps));
}

// Not where the next line of a strided sweep would begin: that is a guess.
bool read_ahead::expects(block_index block) const noexcept {
  const auto b = static_cast<std::int64_t>(block);
  for (const stream& s : streams_) {
    if (s.last < 0 || s.stride == 0 || clock_ - s.used > policy_numbers::now.stream_lately) continue;
    const std::int64_t steps = (b - s.last) / s.stride;
    if ((b - s.last) % s.stride == 0 && steps >= 1 && steps <= reach_of(s)) return true;
  }
  return clock_ - last_recent_ <= policy_numbers::now.stream_lately && recent_[0] >= 0 && std::abs(b - recent_[0]) <= 1;
}

// A strided stream that has been followed to the end of its line.
read_ahead::stream* read_ahead::at_end_of_line(std::int64_t stride, std::int64_t blocks) noexcept {
  if (std::abs(stride) == 1) return nullptr;
  for (stream& s : streams_) {
    if (s.last < 0 || s.stride != stride) continue;
    const std::int64_t left = stride > 0 ? (blocks - 1 - s.last) / stride : s.last / -stride;
    if (left <= std::max<std::int64_t>(1, s.asked)) return &s;  // the last row may be left out
  }
  return nullptr;
}

// The stream goes on with another line, which began at `start` and has come to `b`.
void read_ahead::begin_line(stream& s, std::int64_t start, std::int64_t b) noexcept {
  const std::int64_t outer = start - s.line_start;
  if (s.outer != 0 && std::abs(outer - s.outer) == std::abs(s.stride)) {
    s.staggered = true;
  } else {
    s.outer = std::abs(outer) < std::abs(s.stride) ? outer : 0;
    s.staggered = std::abs(s.outer) > std::abs(s.stride) / 8;
  }
  s.line_start = start;
  s.last = b;
  s.asked = 0;
}

// Starts a stream where three touches, or two neighbours, are in line; nullptr otherwise.  Two are enough for
// a further line of one that is known, and one at the beginning of the segment that comes right after its end.
read_ahead::stream* read_ahead::begin(std::int64_t b, std::int64_t blocks) noexcept {
  std::int64_t stride = 0;
  std::int64_t start = b;
  if (latest_ && latest_->run >= 3 && at_end_of_line(latest_->stride, blocks) == latest_) {
    const std::int64_t length = std::abs(latest_->stride);
    if (latest_->stride > 0 ? b < length : b >= blocks - length) {
      begin_line(*latest_, b, b);
      latest_->window = 1;
      return latest_;
    }
  }
  for (std::int64_t r : recent_) {
    if (r < 0 || r == b) continue;
    const std::int64_t d = b - r;
    if (stream* const s = at_end_of_line(d, blocks)) {
      begin_line(*s, r, b);
      return s;
    }
    const bool third = std::find(recent_.begin(), recent_.end(), r - d) != recent_.end() && r - d >= 0;
    if (std::abs(d) == 1 || third) {
      stride = d;
      start = third ? r - d : r;
      if (std::abs(d) == 1) break;
    }
  }
  if (pattern_ == access_pattern::sequential && stride == 0) stride = 1;
  if (stride == 0) return nullptr;
  stream* slot = &*std::min_element(streams_.begin(), streams_.end(),
                                    [](const stream& a, const stream& c) { return a.used < c.used; });
  *slot = {};
  slot->last = b;
  slot->stride = stride;
  slot->line_start = start;
  return slot;
}

// How many lines of a strided sweep are fetched with one: what comes in stays until the last of
// them.
unsigned read_ahead::lines_together(const stream& s, block_index blocks, unsigned limit,
                                    const ahead_group& g) noexcept {
  if (s.stride <= 1 || s.outer != 1) return 1;
  const auto stride = static_cast<std::uint64_t>(s.stride);
  const std::uint64_t line = (blocks + stride - 1) / stride;
  unsigned n = g.size;
  while (n > 1 && n * (line + limit / n) > g.room) n /= 2;
  return n;
}

std::int64_t read_ahead::touched(block_index block, block_index count, unsigned limit, const ahead_group& g,
                                 std::vector<block_index>& wanted, refill when, bool was_out) {
  if (pattern_ == access_pattern::random) return 0;
  ++clock_;
  const auto b = static_cast<std::int64_t>(block);
  const auto blocks = static_cast<std::int64_t>(count);
  stream* s = match(b, blocks);
  if (!s) s = begin(b, blocks);
  if (!s) {
    std::rotate(recent_.rbegin(), recent_.rbegin() + 1, recent_.rend());
    latest_ = nullptr;
    recent_[0] = b;
    last_recent_ = clock_;
    return 0;
  }
  s->used = clock_;
  s->window = std::min(limit, std::max(2u, s->window * 2));
  ++s->run;
  latest_ = s;

  const unsigned lines = lines_together(*s, count, limit, g);
  const unsigned steps = std::max(1u, s->window / lines);
  if (when == refill::at_each_touch || was_out) s->asked = 0;
  if (s->asked > steps / 2) return s->stride;
  std::int64_t at = s->last;
  std::int64_t line = s->line_start;
  const unsigned before = std::exchange(s->asked, steps);
  for (unsigned i = 1; i <= steps; ++i) {
    at = step(*s, at, blocks, line);
    if (at < 0) break;
    if (i <= before) continue;
    wanted.push_back(static_cast<block_index>(at));
    // Its neighbours up to the end of the group, or of the row of blocks.
    for (std::int64_t n = at + 1; n % lines != 0 && n % s->stride != 0 && n < blocks; ++n)
      wanted.push_back(static_cast<block_index>(n));
  }
  if (s->stride == 1 && at >= 0)
    while (++at % g.size != 0 && at < blocks) wanted.push_back(static_cast<block_index>(at));
  return s->stride;
}

}  // namespace ooc::detail
