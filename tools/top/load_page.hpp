// The page of `ooc top` as text: a title, a row for each server, and the keys.  Nothing here knows
// a terminal.
//
// Lines are never longer than the page is wide: columns of less weight are left out first, and bars
// become percentages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "top/server_load.hpp"

namespace ooc::tool {

enum class sort_key { node, read, written, requests, latency, queue, memory, disk, clients };

/// "node", "read" ...; throws usage_mistake for others.
sort_key sort_key_of(const std::string& name);
/// The key on the keyboard: 'n', 'r', 'w', 't', 'l', 'u', 'm', 'd', 'c'; otherwise nothing.
std::optional<sort_key> sort_key_of(char pressed);

struct page_style {
  bool colour = false;
  bool unicode = false;
};

struct load_page {
  std::string url;
  std::string time;
  double interval = 2;
  sort_key sorted = sort_key::node;
  std::size_t first = 0;  ///< rows of I/O servers that are scrolled away
};

/// The lines, without line ends; `height` 0: as many as there are, without the line of keys.
std::vector<std::string> draw(const load_page& page, const std::vector<server_load>& loads, std::size_t width,
                              std::size_t height, page_style style);

}  // namespace ooc::tool
