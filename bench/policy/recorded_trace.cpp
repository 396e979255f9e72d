#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "policy/access_trace.hpp"
#include "runtime/policy/event_trace.hpp"

namespace bench::policy {

using ooc::detail::trace_event;
using ooc::detail::trace_touch;
using ooc::detail::traced;

namespace {

/// The array of a segment, or of its grains, and how its blocks are numbered.
struct numbered_blocks {
  std::uint16_t array;
  std::uint64_t block_bytes;
};

// What was touched of a block that came whole nobody saw: it counts as all of it.
void add_touch(access_trace& t, const numbered_blocks& in, const trace_event& e, std::uint64_t& ran_ns) {
  const array_shape& of = t.arrays[in.array];
  const std::uint64_t begin = e.block * in.block_bytes, place = begin + e.amount;
  if (place >= of.bytes) return;  // it has grown since it was opened
  constexpr std::uint64_t most = ~std::uint32_t{0};
  const bool write = e.detail == static_cast<std::uint8_t>(trace_touch::write);
  const std::uint64_t piece = of.in_grains ? std::min(in.block_bytes, t.unit) : in.block_bytes;
  for (std::uint64_t at = begin; at < begin + in.block_bytes; at += piece) {
    const bool itself = place - at < piece;
    const auto ran = static_cast<std::uint32_t>(std::min(std::exchange(ran_ns, 0), most));
    t.accesses.push_back({itself ? place : at, ran, in.array, write});
  }
}

}  // namespace

access_trace recorded_trace(const std::string& file) {
  access_trace t;
  t.name = file;
  std::map<std::uint16_t, numbered_blocks> arrays;
  std::uint64_t ran_ns = 0;
  bool grains_before = false;
  for (const trace_event& e : ooc::detail::read_trace(file)) {
    switch (e.what) {
      case traced::began: t.budget = e.block; break;
      case traced::opened:  // of the grains first, if there are any
        if (!std::exchange(grains_before, e.detail == 1)) t.arrays.push_back({.in_grains = false});
        t.arrays.back() = {e.block, e.amount, e.detail == 1 || t.arrays.back().in_grains, 1};
        arrays[e.segment] = {static_cast<std::uint16_t>(t.arrays.size() - 1), e.amount};
        break;
      case traced::shape: t.arrays.back().element_bytes = std::max<std::uint32_t>(1, e.amount); break;
      case traced::ran: ran_ns += e.block; break;
      case traced::missed:
      case traced::found:
      case traced::first_write:
        if (const auto in = arrays.find(e.segment); in != arrays.end()) add_touch(t, in->second, e, ran_ns);
        break;
      default: break;
    }
  }
  const auto in_grains = [](const array_shape& a) { return a.in_grains; };
  if (!t.arrays.empty() && std::none_of(t.arrays.begin(), t.arrays.end(), in_grains))
    t.unit = t.arrays.front().block_bytes;
  if (t.accesses.empty()) throw std::runtime_error("policy: the trace '" + file + "' has no touch");
  return t;
}

}  // namespace bench::policy
