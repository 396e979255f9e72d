#include "top/load_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>

#include "base/command.hpp"
#include "base/entry_text.hpp"
#include "progress/progress.hpp"

namespace ooc::tool {

namespace {

struct key_name {
  sort_key key;
  char pressed;
  const char* name;
};
constexpr std::array keys{
    key_name{sort_key::node, 'n', "node"},       key_name{sort_key::read, 'r', "read"},
    key_name{sort_key::written, 'w', "written"}, key_name{sort_key::requests, 't', "requests"},
    key_name{sort_key::latency, 'l', "latency"}, key_name{sort_key::queue, 'u', "queue"},
    key_name{sort_key::memory, 'm', "memory"},   key_name{sort_key::disk, 'd', "disk"},
    key_name{sort_key::clients, 'c', "clients"},
};

enum class tone { plain, title, good, busy, full };

const char* code(tone t) {
  switch (t) {
    case tone::plain: return "";
    case tone::title: return "\x1b[1m";
    case tone::good: return "\x1b[32m";
    case tone::busy: return "\x1b[33m";
    case tone::full: return "\x1b[31m";
  }
  return "";
}

/// A line that knows how many cells it takes; what is beyond the width is cut off.
class line {
 public:
  line(std::size_t width, page_style style) : width_(width), style_(style) {}

  void add(const std::string& text, tone t = tone::plain) {
    std::string kept;
    for (std::size_t i = 0; i < text.size() && cells_ < width_; ++cells_) {
      std::size_t end = i + 1;  // of the character, in UTF-8
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      kept.append(text, i, end - i);
      i = end;
    }
    const bool coloured = style_.colour && t != tone::plain && !kept.empty();
    text_ += coloured ? code(t) + kept + "\x1b[0m" : kept;
  }
  void fill_to(std::size_t cells) {
    if (cells > cells_) add(std::string(cells - cells_, ' '));
  }
  std::size_t cells() const noexcept { return cells_; }
  std::string text() && {
    if (!style_.colour) text_.erase(text_.find_last_not_of(' ') + 1);
    return std::move(text_);
  }

 private:
  std::size_t width_;
  page_style style_;
  std::size_t cells_ = 0;
  std::string text_;
};

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string latency_text(double us) {
  char text[32];
  if (us < 1000)
    std::snprintf(text, sizeof text, "%.0f us", us);
  else if (us < 1e6)
    std::snprintf(text, sizeof text, "%.1f ms", us / 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f s", us / 1e6);
  return text;
}

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

/// "[####....]  50 %" where there is room, otherwise "50 %".
void add_bar(line& l, std::uint64_t part, std::uint64_t all, std::size_t width, page_style style) {
  if (all == 0) return l.add(right("-", width));
  const double s = std::clamp(share(part, all), 0.0, 1.0);
  const tone t = s < 0.7 ? tone::good : s < 0.9 ? tone::busy : tone::full;
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3.0f %%", 100 * s);
  if (width >= 10) {
    const std::size_t length = width - 8;
    const auto on = static_cast<std::size_t>(std::lround(s * static_cast<double>(length)));
    std::string bar, rest;
    for (std::size_t i = 0; i < on; ++i) bar += style.unicode ? "█" : "#";
    for (std::size_t i = on; i < length; ++i) rest += style.unicode ? "░" : ".";
    l.add("[");
    l.add(bar, t);
    l.add(rest + "] ");
    width = 5;
  }
  l.add(right(percent, width), t);
}

/// The newest at the right, the highest as high as can be.
std::string history_text(const std::deque<double>& all, std::size_t width, page_style style) {
  static constexpr std::array unicode{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array ascii{" ", ".", ":", "-", "=", "+", "*", "#", "@"};
  const std::size_t n = std::min(width, all.size());
  const double highest = all.empty() ? 0 : *std::max_element(all.begin(), all.end());
  std::string text(width - n, ' ');
  for (std::size_t i = all.size() - n; i < all.size(); ++i) {
    const auto step = highest <= 0 ? 0 : static_cast<std::size_t>(std::ceil(8 * all[i] / highest));
    text += (style.unicode ? unicode : ascii)[std::min<std::size_t>(step, 8)];
  }
  return text;
}

struct column {
  const char* title;
  sort_key key;
  std::size_t width;  ///< cells
  std::size_t wider;  ///< cells where there is room; 0: the same
  int weight;         ///< those of less are left out first
  bool of_nodes_only;
  std::function<void(line&, const server_load&, std::size_t width)> add;
};

std::vector<column> columns_of(page_style style) {
  const auto bytes = [](double server_load::*m) {
    return [m](line& l, const server_load& s, std::size_t w) { l.add(right(human_bytes(s.*m), w)); };
  };
  return {
      {"node", sort_key::node, 5, 0, 10, false,
       [](line& l, const server_load& s, std::size_t) { l.add(s.name, tone::title); }},
      {"read/s", sort_key::read, 10, 0, 9, true, bytes(&server_load::read)},
      {"written/s", sort_key::written, 10, 0, 8, true, bytes(&server_load::written)},
      {"requests/s", sort_key::requests, 10, 0, 3, false,
       [](line& l, const server_load& s, std::size_t w) { l.add(right(std::to_string(std::llround(s.requests)), w)); }},
      {"latency", sort_key::latency, 8, 0, 5, false,
       [](line& l, const server_load& s, std::size_t w) { l.add(right(latency_text(s.latency_us), w)); }},
      {"queue", sort_key::queue, 7, 0, 6, true,
       [](line& l, const server_load& s, std::size_t w) {
         l.add(right(std::to_string(s.waiting) + "+" + std::to_string(s.running), w));
       }},
      {"memory", sort_key::memory, 6, 16, 4, true,
       [style](line& l, const server_load& s, std::size_t w) { add_bar(l, s.memory, s.memory_limit, w, style); }},
      {"disk", sort_key::disk, 5, 16, 7, true,
       [style](line& l, const server_load& s, std::size_t w) { add_bar(l, s.disk_used, s.disk_size, w, style); }},
      {"clients", sort_key::clients, 7, 0, 2, false,
       [](line& l, const server_load& s, std::size_t w) { l.add(right(std::to_string(s.clients), w)); }},
      {"history", sort_key::node, 8, 24, 1, false,
       [style](line& l, const server_load& s, std::size_t w) { l.add(history_text(s.history, w, style), tone::good); }},
  };
}

/// Those that fit, with their widths.
std::vector<column> fitting(std::size_t width, page_style style) {
  std::vector<column> all = columns_of(style);
  const auto total = [&] {
    std::size_t n = 0;
    for (const column& c : all) n += c.width + 1;
    return n - 1;
  };
  while (all.size() > 1 && total() > width)
    all.erase(
        std::min_element(all.begin(), all.end(), [](const column& a, const column& b) { return a.weight < b.weight; }));
  // Then bars, those of more weight first.
  std::vector<column*> bars;
  for (column& c : all)
    if (c.wider != 0) bars.push_back(&c);
  std::sort(bars.begin(), bars.end(), [](const column* a, const column* b) { return a->weight > b->weight; });
  for (column* c : bars)
    if (total() + c->wider - c->width <= width) c->width = c->wider;
  return all;
}

double value_of(const server_load& s, sort_key key) {
  switch (key) {
    case sort_key::node: return 0;
    case sort_key::read: return s.read;
    case sort_key::written: return s.written;
    case sort_key::requests: return s.requests;
    case sort_key::latency: return s.latency_us;
    case sort_key::queue: return static_cast<double>(s.waiting + s.running);
    case sort_key::memory: return share(s.memory, s.memory_limit);
    case sort_key::disk: return share(s.disk_used, s.disk_size);
    case sort_key::clients: return static_cast<double>(s.clients);
  }
  return 0;
}

std::string row_of(const server_load& s, const std::vector<column>& columns, std::size_t width, page_style style) {
  line l(width, style);
  if (!s.up) {
    l.add(s.name, tone::title);
    l.fill_to(6);
    const bool metad = s.name == "metad";
    if (s.retired) {
      l.add("is retired: nothing is there");
      return std::move(l).text();
    }
    l.add("has not answered for " + human_seconds(s.silent_s) +
              (metad ? "; arrays that are open go on without it: " : "; its data cannot be reached: ") +
              printable(s.why),
          tone::full);
    return std::move(l).text();
  }
  for (const column& c : columns) {
    if (l.cells() != 0) l.add(" ");
    const std::size_t left = l.cells();
    if (c.of_nodes_only && s.name == "metad")
      l.add(right("-", c.width));
    else
      c.add(l, s, c.width);
    l.fill_to(left + c.width);
  }
  return std::move(l).text();
}

std::string summary_of(const std::vector<server_load>& loads) {
  double read = 0, written = 0, requests = 0;
  std::size_t down = 0, nodes = 0;
  for (std::size_t i = 1; i < loads.size(); ++i) {
    if (loads[i].retired) continue;
    ++nodes;
    read += loads[i].read;
    written += loads[i].written;
    requests += loads[i].requests;
    if (!loads[i].up) ++down;
  }
  return std::to_string(nodes) + (nodes == 1 ? " I/O node" : " I/O nodes") +
         (down != 0 ? ", " + std::to_string(down) + " gone" : "") + "   read " + human_bytes(read) + "/s   written " +
         human_bytes(written) + "/s   " + std::to_string(std::llround(requests)) + " requests/s";
}

}  // namespace

sort_key sort_key_of(const std::string& name) {
  for (const key_name& k : keys)
    if (name == k.name) return k.key;
  throw usage_mistake("--sort " + name +
                      ": choose node, read, written, requests, latency, queue, memory, disk or clients");
}

std::optional<sort_key> sort_key_of(char pressed) {
  for (const key_name& k : keys)
    if (pressed == k.pressed) return k.key;
  return {};
}

std::vector<std::string> draw(const load_page& page, const std::vector<server_load>& loads, std::size_t width,
                              std::size_t height, page_style style) {
  std::vector<std::string> lines;
  const auto text_line = [&](const std::string& text, tone t) {
    line l(width, style);
    l.add(text, t);
    lines.push_back(std::move(l).text());
  };
  // The time stays where the width does not do for both.
  line title(width, style);
  const std::size_t room = width > page.time.size() + 1 ? width - page.time.size() - 1 : width;
  title.add(("ooc top  " + printable(page.url)).substr(0, room), tone::title);
  if (room < width) {
    title.fill_to(width - page.time.size());
    title.add(page.time);
  }
  lines.push_back(std::move(title).text());
  text_line(summary_of(loads), tone::plain);

  const std::vector<column> columns = fitting(width, style);
  line head(width, style);
  for (const column& c : columns) {
    if (head.cells() != 0) head.add(" ");
    const std::size_t left = head.cells();
    const bool by_this = c.key == page.sorted && std::string(c.title) != "history";
    const std::string text = std::string(by_this ? ">" : "") + c.title;
    head.add(c.key == sort_key::node ? text : right(text, c.width), by_this ? tone::title : tone::plain);
    head.fill_to(left + c.width);
  }
  lines.push_back(std::move(head).text());

  std::vector<const server_load*> rows;
  for (std::size_t i = 1; i < loads.size(); ++i) rows.push_back(&loads[i]);
  std::stable_sort(rows.begin(), rows.end(), [&](const server_load* a, const server_load* b) {
    return value_of(*a, page.sorted) > value_of(*b, page.sorted);
  });
  lines.push_back(row_of(loads[0], columns, width, style));
  const std::size_t first = std::min(page.first, rows.size());
  std::size_t shown = rows.size() - first;
  if (height != 0) shown = std::min(shown, height > lines.size() + 2 ? height - lines.size() - 2 : 0);
  for (std::size_t i = first; i < first + shown; ++i) lines.push_back(row_of(*rows[i], columns, width, style));
  if (height != 0) {
    if (shown < rows.size())
      text_line("nodes " + std::to_string(first) + " to " + std::to_string(first + shown) + " of " +
                    std::to_string(rows.size()) + " in this order: up and down",
                tone::plain);
    std::string help = "q quit   sort:";
    for (const key_name& k : keys) help += std::string(" ") + k.pressed + " " + k.name;
    text_line(help, tone::plain);
    if (lines.size() > height) lines.resize(height);
  }
  return lines;
}

}  // namespace ooc::tool
