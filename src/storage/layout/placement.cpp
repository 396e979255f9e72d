#include "storage/layout/placement.hpp"

#include <cerrno>
#include <charconv>

#include "storage/base/refuse.hpp"

namespace ooc::storage {

node_list nodes_from_text(std::string_view text) {
  node_list nodes;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    const auto r = std::from_chars(at, end, nodes.emplace_back());
    if (r.ec != std::errc() || (r.ptr != end && (*r.ptr != ',' || r.ptr + 1 == end)))
      refuse(EINVAL, "'" + std::string(text) + "' is no list of nodes: give their numbers, as in 1,4");
    at = r.ptr == end ? end : r.ptr + 1;
  }
  return nodes;
}

std::string nodes_to_text(const node_list& nodes) {
  std::string text;
  for (const std::uint32_t n : nodes) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

}  // namespace ooc::storage
